import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostOf } from './host-of.js'

test('an IPv4 address is a host, also in the form of IPv6', () => {
  assert.deepEqual(['192.0.2.1', '::ffff:192.0.2.1', '::FFFF:192.0.2.1'].map(hostOf), Array(3).fill('192.0.2.1'))
})

test('all addresses of a /64 are one host', () => {
  const hosts = ['2001:db8:0:1::', '2001:db8:0:1::7', '2001:db8:0:1:ffff:ffff:ffff:ffff', '2001:db8::1:2:3:4:5'].map(hostOf)
  assert.deepEqual(hosts, [...Array(3).fill('2001:db8:0:1'), '2001:db8:0:1'])
  assert.notEqual(hostOf('2001:db8:0:2::7'), hosts[0])
  assert.deepEqual(['::1', 'fe80::1%eth0', '::'].map(hostOf), ['0:0:0:0', 'fe80:0:0:0', '0:0:0:0'])
})
