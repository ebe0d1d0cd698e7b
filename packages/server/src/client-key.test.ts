import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientKey } from './client-key.js'

test('all addresses of a network are one client, and a name is itself', () => {
  assert.deepEqual(
    ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1:443'].map((text) => clientKey(text)),
    Array(3).fill('192.0.2.1'),
  )
  const network = ['2001:db8:0:1::', '2001:db8:0:ff:ffff:ffff:ffff:ffff', '[2001:db8::2]:443'].map((text) => clientKey(text))
  assert.deepEqual(network, Array(3).fill('2001:db8::/56'))
  assert.equal(clientKey('2001:db8:0:1::7', 64), '2001:db8:0:1::/64')
  assert.deepEqual(
    ['alice', '', 'cafe::1'].map((text) => clientKey(text)),
    ['alice', '', 'cafe::1'],
  )
})
