import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { clientNetwork } from './address.js'
import { keyOf } from './key-reader.js'
import { header } from './readers.js'

test('an address in any form is the network of its client, and no other text is', () => {
  const networkOf = clientNetwork()
  const network = '2001:db8:0:4200::/56'
  const forms: readonly (readonly [text: string, key: string | undefined])[] = [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:40001', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:40001', '203.0.113.7'],
    ['64:ff9b::203.0.113.7', '203.0.113.7'],
    ['2001:db8:0:4217::1', network],
    ['2001:DB8:0:4217:0:0:0:1', network],
    ['[2001:db8:0:4217::1]', network],
    ['[2001:db8:0:4217::1]:443', network],
    ['fe80::1%eth0', 'fe80::/56'],
    ['6.6.6.6, 203.0.113.7', '203.0.113.7'],
    ['6.6.6.6,2001:db8:0:4217::9', network],
    [' 203.0.113.7 ', '203.0.113.7'],
    ['for=6.6.6.6, for="[2001:db8:0:4217::1]:443";proto=https', network],
    ['::1', '::/56'],
    // Names that read like addresses.
    ['cafe::1', undefined],
    ['00:11:22:33:44:55:66:77', undefined],
    ['alice', undefined],
    ['', undefined],
    ['a.b:1', undefined],
    // Other spellings of an address are no other client.
    ['203.0.113.7/24', '203.0.113.7'],
    ['[203.0.113.7]:80', '203.0.113.7'],
    ...['"[A]:1"', "'A'", '[A]:', '[A]:99999', '[A]:1234567', 'A/128', '[A/64]:80', 'A/', 'A%!zone', ' A ,, ', ',A', 'A,', ', ,A,'].map(
      (form) => [form.replace('A', '2001:db8:0:4217::1'), network] as const,
    ),
    ['2001:db8:0:4217:0:0:0:1:40001', network],
    ['for="[2001:db8:0:4217::1]:80", ', network],
    [network, network],
    ['203.0.113.7, unknown', undefined],
    ['010.0.0.1', undefined],
  ]
  for (const [text, key] of forms) assert.equal(networkOf(text), key, text)
})

test('subnets, and the nth address of a list from the right', () => {
  assert.equal(clientNetwork({ ipv6Subnet: 64 })('2001:db8:0:4217::1'), '2001:db8:0:4217::/64')
  assert.equal(clientNetwork({ ipv6Subnet: 128 })('[2001:DB8::1]:1'), '2001:db8::1')
  assert.equal(clientNetwork({ ipv4Subnet: 24 })('203.0.113.7'), '203.0.113.0/24')
  const second = clientNetwork({ hop: 2 })
  assert.deepEqual(['6.6.6.6, 203.0.113.7, 10.0.0.1', '203.0.113.7'].map(second), ['203.0.113.7', '203.0.113.7'])
  for (const options of [{ ipv6Subnet: 31 }, { ipv4Subnet: 7 }, { hop: 0 }, { hops: 1 }] as object[]) {
    assert.throws(() => clientNetwork(options), { name: 'PolicyError' })
  }
})

test('200 addresses of one /64 in a header that names the client are one key; other headers are taken as they are', () => {
  const keys = (name: string) =>
    new Set(
      Array.from({ length: 200 }, (_, i) =>
        keyOf(header(name), factsOf({ headers: { [name]: `2001:db8:0:4217::${i.toString(16)}` } }), undefined),
      ),
    )
  assert.deepEqual([...keys('cf-connecting-ip')], ['header:cf-connecting-ip:2001:db8:0:4200::/56'])
  assert.equal(keys('x-tenant').size, 200)
})
