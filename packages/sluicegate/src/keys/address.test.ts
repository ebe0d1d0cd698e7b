import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressCorpus, factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { type AddressOptions, type AddressReader, address } from './address.js'
import type { FallbackReason } from './client-address.js'
import { keyOf } from './key-reader.js'
import { header } from './readers.js'

const PROXY = '10.0.0.1'

function read(options: AddressOptions, headers: Readonly<Record<string, string>> = {}, remoteAddress: string | undefined = PROXY) {
  return address(options).read(factsOf({ headers, remoteAddress }), undefined)
}

for (const { why, socket, headers, options, client } of addressCorpus().requests) {
  test(`${why}: ${client ?? 'no key'}`, () => {
    assert.equal(address(options).read(factsOf({ headers, remoteAddress: socket }), undefined), client)
  })
}

test('trust without a number or networks is refused, with what to do instead', () => {
  const untold = /trustedHops: would trust any address .* makes up; must be the number of your own proxies .*docs\/keys\.md \(got true\)/
  assert.throws(() => address({ trustedHops: true as never }), {
    code: 'TRUST_INVALID',
    option: 'trustedHops',
    value: true,
    message: untold,
  })
  assert.throws(() => address({ trustedNetworks: true as never }), { code: 'TRUST_INVALID', option: 'trustedNetworks', value: true })
  for (const hops of [-1, 1.5, 33, Number.NaN, Number.POSITIVE_INFINITY, '1', 'loopback', null, false, []]) {
    assert.throws(() => address({ trustedHops: hops as never }), { code: 'TRUST_INVALID', option: 'trustedHops', value: hops })
  }
  for (const networks of [[], '10.0.0.0/8', false, null, 1, {}]) {
    assert.throws(() => address({ trustedNetworks: networks as never }), {
      code: 'TRUST_INVALID',
      option: 'trustedNetworks',
      value: networks,
    })
  }
})

test('a network that contains everything, or is invalid, is refused', () => {
  const none = [
    '0.0.0.0/0',
    '::/0',
    '0.0.0.0/1',
    '10.0.0.0/7',
    '2000::/3',
    '::ffff:0:0/96',
    '::ffff:0:0/80',
    '::/8',
    '::/32',
    '::/64',
    '::/80',
    '::fffe:0:0/95',
    '::ffff:0:0/97',
    '10.0.0.0/33',
    '::/129',
    '10.0.0.0/',
  ]
  const others = [
    '10.0.0.0/08',
    '10.0.0.0/+8',
    '10.0.0.0/8 ',
    '10.0.0.0/255.0.0.0',
    '10.0.0/8',
    'fe80::%eth0/64',
    'fe80::1%eth0',
    '*',
    '',
    'private',
    '__proto__',
  ]
  for (const network of [...none, ...others, 8, null, undefined]) {
    const refused = { code: 'TRUST_INVALID', option: 'trustedNetworks[1]', value: network }
    assert.throws(() => address({ trustedNetworks: ['loopback', network as never] }), refused, String(network))
  }
})

test('an address with a length that cuts it off is refused with the network it is in', () => {
  assert.throws(() => address({ trustedNetworks: ['10.1.2.3/8'] }), { code: 'TRUST_INVALID', message: /within 10\.0\.0\.0\/8; write that/ })
  assert.throws(() => address({ trustedNetworks: ['2001:db8::1/32'] }), { code: 'TRUST_INVALID', message: /within 2001:db8::\/32; write/ })
})

test('IPv6 networks that hold no IPv4 address are networks as any other', () => {
  for (const network of ['::/96', '::/95', '::fffe:0:0/96', '64:ff9b::/96', '100::/8', 'fc00::/7']) {
    const header = { 'x-forwarded-for': '203.0.113.7' }
    assert.equal(read({ trustedNetworks: [network] }, header), PROXY, network)
  }
})

test('networks may be written as mapped ones', () => {
  const options = { trustedNetworks: ['::ffff:10.0.0.0/104'] }
  assert.equal(read(options, { 'x-forwarded-for': '203.0.113.7' }), '203.0.113.7')
  assert.equal(read(options, { 'x-forwarded-for': '203.0.113.7' }, '11.0.0.1'), '11.0.0.1')
})

test('hops and networks together are refused', () => {
  assert.throws(() => address({ trustedHops: 1, trustedNetworks: ['loopback'] }), {
    code: 'TRUST_INVALID',
    option: 'trustedHops',
    value: 1,
  })
})

test('a header without trusted proxies is refused', () => {
  for (const header of ['cf-connecting-ip', 'x-forwarded-for', 'forwarded']) {
    assert.throws(() => address({ header }), { code: 'TRUST_INVALID', option: 'header', value: header })
    assert.throws(() => address({ header, trustedHops: 0 }), { code: 'TRUST_INVALID', option: 'header', value: header })
  }
  for (const header of ['', 'x real ip', 'x-real-ip:', 'x\n', 1, null]) {
    assert.throws(() => address({ header: header as never, trustedHops: 1 }), { code: 'OPTION_INVALID', option: 'header', value: header })
  }
})

test('subnets out of range, unknown options and other misuse are refused', () => {
  for (const bits of [31, 129, 56.5, '56', null]) {
    assert.throws(() => address({ ipv6Subnet: bits as never }), { code: 'OPTION_INVALID', option: 'ipv6Subnet', value: bits })
  }
  for (const bits of [7, 33, -1]) assert.throws(() => address({ ipv4Subnet: bits }), { code: 'OPTION_INVALID', option: 'ipv4Subnet' })
  assert.throws(() => address({ trustProxy: 1 } as never), { code: 'OPTION_UNKNOWN', option: 'trustProxy' })
  assert.throws(() => address({ onFallback: 'warn' as never }), { code: 'OPTION_INVALID', option: 'onFallback' })
  assert.throws(() => address({ otherwise: ((): string => 'x') as never }), { code: 'OPTION_INVALID', option: 'otherwise' })
  assert.throws(() => address(null as never), { code: 'OPTION_INVALID' })
})

test('onFallback is called with the reason when an address nearer than the client’s is used', () => {
  const reported: [FallbackReason, string][] = []
  const onFallback: AddressOptions['onFallback'] = (reason, { path }) => reported.push([reason, path])
  const list = (value: string) => ({ 'x-forwarded-for': value })
  read({ trustedHops: 1, onFallback })
  read({ trustedHops: 2, onFallback }, list('203.0.113.7'))
  read({ trustedHops: 1, onFallback }, list('203.0.113.7, unknown'))
  read({ trustedNetworks: ['10.0.0.0/8'], onFallback })
  read({ trustedNetworks: ['10.0.0.0/8'], onFallback }, list('203.0.113.7, junk'))
  read({ trustedNetworks: ['10.0.0.0/8'], onFallback }, list('10.0.0.2,'.repeat(100)))
  read({ trustedNetworks: ['10.0.0.0/8'], onFallback }, list(`10.0.0.3${', 10.0.0.2'.repeat(100)}`))
  assert.deepEqual(reported, [
    ['missing', '/'],
    ['missing', '/'],
    ['unreadable', '/'],
    ['missing', '/'],
    ['unreadable', '/'],
    ['unreadable', '/'],
    ['endless', '/'],
  ])
  reported.length = 0
  read({ onFallback }, list('203.0.113.7'))
  read({ trustedHops: 1, onFallback }, list('203.0.113.7'))
  read({ trustedHops: 3, onFallback }, list('203.0.113.7, junk, unknown'))
  read({ trustedNetworks: ['10.0.0.0/8'], onFallback }, list('203.0.113.7'))
  read({ trustedNetworks: ['10.0.0.0/8'], onFallback }, {}, '203.0.113.7')
  read({ trustedHops: 3, header: 'x-real-ip', onFallback }, { 'x-real-ip': '203.0.113.7' })
  assert.deepEqual(reported, [])
})

test('a request without an address goes to otherwise, and without that is refused by name', () => {
  const facts = factsOf({ headers: { 'x-node': 'a' } })
  assert.equal(keyOf(address({ otherwise: header('x-node') }), facts, undefined), 'header:x-node:a')
  assert.throws(() => keyOf(address(), facts, undefined), { code: 'KEY_MISSING', option: 'key', message: /^key: address\(\) found no key/ })
})

test('what a reader trusts is there to be seen', () => {
  assert.equal((address() as AddressReader).header, undefined)
  assert.equal((address({ trustedHops: 1, header: 'Forwarded' }) as AddressReader).header, 'forwarded')
  assert.deepEqual(
    address({ trustedHops: 1, otherwise: header('x') }).readers?.map(({ name }) => name),
    ['address(x-forwarded-for)', 'header(x)'],
  )
})
