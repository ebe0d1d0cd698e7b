import assert from 'node:assert/strict'
import { BlockList, isIP, isIPv4 } from 'node:net'
import { test } from 'node:test'
import ipaddr from 'ipaddr.js'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { type AddressOptions, address, clientNetwork } from './address.js'
import { type KeyReader, keyOf } from './key-reader.js'
import { header } from './readers.js'

/** An address and one of the many ways to write it. */
interface SpelledAddress {
  readonly text: string
  /** Sixteen; IPv4 as what it is mapped to. */
  readonly bytes: readonly number[]
}

export function spelledAddress(random: Random): SpelledAddress {
  const choice = random.integer(0, 9)
  if (choice < 3) return spelledIpv4(random)
  const groups = choice < 5 ? [0, 0, 0, 0, 0, 0xffff, word(random), word(random)] : Array.from({ length: 8 }, () => word(random))
  const zone = random.chance(0.1) ? `%${random.pick(['eth0', '1', 'en0.5', 'br-lan', 'wlan_0'])}` : ''
  return { text: spelledGroups(random, groups) + zone, bytes: groups.flatMap((group) => [group >> 8, group & 255]) }
}

/** The text with a character or two changed, added or taken away: an address still, or none. */
export function misspelt(random: Random, text: string): string {
  let changed = text
  for (let i = random.integer(1, 2); i > 0; i--) {
    const at = random.integer(0, changed.length)
    const unit = random.pick([...'0123456789abcfgxABF:::...[]/ \t\n"-_,;=\0\u0661\uff11\ud800'])
    changed = changed.slice(0, at) + (random.chance(0.3) ? '' : unit) + changed.slice(at + random.integer(0, 1))
  }
  return changed
}

function spelledIpv4(random: Random): SpelledAddress {
  const octets = Array.from({ length: 4 }, () => random.pick([0, 1, 9, 10, 99, 100, 127, 199, 200, 249, 250, 255, random.integer(0, 255)]))
  return { text: octets.join('.'), bytes: [...new Array<number>(10).fill(0), 255, 255, ...octets] }
}

function word(random: Random): number {
  return random.pick([0, 0, 0, 1, 0xf, 0x10, 0xff, 0x100, 0xfff, 0x1000, 0xffff, random.integer(0, 0xffff)])
}

function spelledGroups(random: Random, groups: readonly number[]): string {
  const digits = groups.map((group) => spelledGroup(random, group))
  const isDotted = random.chance(0.3)
  if (isDotted) {
    const tail = groups.slice(6).flatMap((group) => [group >> 8, group & 255])
    digits.splice(6, 2, tail.join('.'))
  }
  const most = isDotted ? 6 : 8
  const zeros = groups.flatMap((group, i) => (group === 0 && i < most ? [i] : []))
  if (zeros.length === 0 || random.chance(0.2)) return digits.join(':')
  const from = random.pick(zeros)
  let to = from + 1
  while (to < most && groups[to] === 0 && random.chance(0.8)) to++
  return `${digits.slice(0, from).join(':')}::${digits.slice(to).join(':')}`
}

function spelledGroup(random: Random, group: number): string {
  const digits = group.toString(16).padStart(random.pick([1, 1, 1, 4, random.integer(1, 4)]), '0')
  return random.chance(0.3) ? digits.toUpperCase() : digits
}

/** What every hop wrote of the one before it, the nearest last, in words of the test: no header yet. */
interface HopTrail {
  readonly socket: string
  readonly elements: readonly string[]
}

const PROXIES = ['10.0.0.2', '10.1.2.3', '::ffff:10.9.9.9', 'fd00::17', '172.16.5.4', '127.0.0.1']
const NO_ADDRESSES = ['unknown', '_hidden', '_gazonk:80', '', 'junk', '127.1', '010.0.0.1', '1.2.3.4.5', '__proto__', '\ud800']

/** A client who may have made up a few hops, and proxies behind him, most of them in {@link TRUSTED}. */
function hopTrail(seed: number): HopTrail {
  const random = new Random(seed)
  const elements = Array.from({ length: random.integer(0, 5) }, () => {
    const choice = random.integer(0, 9)
    if (choice < 4) return withPort(random, random.pick(PROXIES))
    if (choice < 8) return withPort(random, spelledAddress(random).text.replace(/%.*/, ''))
    return choice < 9 ? random.pick(NO_ADDRESSES) : misspelt(random, random.pick(PROXIES)).replace(/[,;"\\=\s]/g, '')
  })
  return { socket: random.chance(0.8) ? random.pick(PROXIES) : spelledAddress(random).text.replace(/%.*/, ''), elements }
}

const TRUSTED = ['uniquelocal', 'loopback']

const trusted = new BlockList()
trusted.addSubnet('10.0.0.0', 8, 'ipv4')
trusted.addSubnet('172.16.0.0', 12, 'ipv4')
trusted.addSubnet('192.168.0.0', 16, 'ipv4')
trusted.addSubnet('127.0.0.0', 8, 'ipv4')
trusted.addSubnet('fc00::', 7, 'ipv6')
trusted.addAddress('::1', 'ipv6')

/** Whose a request is, by arrays, regular expressions, ipaddr.js and net.BlockList: slow and plain. */
function clientOf({ socket, elements }: HopTrail, hops: number | undefined): string {
  const chain = [socket, ...elements.toReversed()].map(addressIn)
  if (hops !== undefined) return chain.slice(0, hops + 1).findLast((address) => address !== undefined) as string
  const end = chain.findIndex((address) => address === undefined || !trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6'))
  return (end < 0 ? chain.at(-1) : (chain[end] ?? chain[end - 1])) as string
}

/** Ports and brackets off, then as ipaddr.js writes it, if net.isIP takes it. */
function addressIn(element: string): string | undefined {
  const [, bracketed, plain] = element.match(/^(?:\[([^[\]]*:[^[\]]*)\]|([^:[\]]+))(?::(?:\d{1,5}|_[\w.-]+))?$/) ?? []
  const text = bracketed ?? plain ?? element
  if (isIP(text) === 0) return undefined
  const address = ipaddr.process(text)
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString()
}

function withPort(random: Random, text: string): string {
  const port = random.pick(['', '', '', ':1', ':4711', ':65535', ':_web'])
  if (!text.includes(':')) return text + port
  return port === '' && random.chance(0.5) ? text : `[${text}]${port}`
}

const SEEDS = shortOrLong(800, 2500)
const trails = Array.from({ length: SEEDS }, (_, seed) => hopTrail(seed))

const readers = new Map<string, KeyReader>()

function read(options: AddressOptions, remoteAddress: string, value: string | undefined): string | undefined {
  const { header = 'x-forwarded-for' } = options
  const id = JSON.stringify(options)
  const reader = readers.get(id) ?? address({ ...options, ipv6Subnet: 128 })
  readers.set(id, reader)
  return reader.read(factsOf({ headers: value === undefined ? {} : { [header]: value }, remoteAddress }), undefined)
}

/** Translators and 6to4 are counted by IPv4 addresses; the plain model knows nothing of that. */
const isPlain = (client: string): boolean => !/^(64:ff9b::|2002:)/.test(client)

test('the trails are different ones', () => {
  assert.ok(new Set(trails.map((trail) => JSON.stringify(trail))).size >= 0.8 * SEEDS)
})

test('X-Forwarded-For names whom the plain model names, for each number of hops and by networks', () => {
  const outcomes = new Set<string>()
  for (const [seed, trail] of trails.entries()) {
    const random = new Random(seed + SEEDS)
    const joint = (): string => random.pick([',', ', ', ' ,', ' \t, '])
    const value = trail.elements.length === 0 ? undefined : trail.elements.reduce((left, element) => left + joint() + element)
    for (const hops of [0, 1, 2, 3, 5]) {
      const client = clientOf(trail, hops)
      if (isPlain(client))
        assert.equal(read({ trustedHops: hops }, trail.socket, value), client, `${hops} hops of ${JSON.stringify(trail)}`)
      outcomes.add(client)
    }
    const client = clientOf(trail, undefined)
    if (isPlain(client)) assert.equal(read({ trustedNetworks: TRUSTED }, trail.socket, value), client, JSON.stringify(trail))
  }
  assert.ok(outcomes.size > 0.4 * SEEDS, `${outcomes.size} clients`)
})

test('Forwarded names the same, quoted, among other parameters and in any order', () => {
  for (const [seed, trail] of trails.entries()) {
    const random = new Random(seed + SEEDS)
    // Of a list in Forwarded an element is never nothing: it says for="" then.
    const value = trail.elements.map((element) => forwardedElement(random, element)).join(random.pick([',', ', ', ' , ']))
    const text = trail.elements.length === 0 ? undefined : value
    for (const options of [{ trustedHops: 1 }, { trustedHops: 3 }, { trustedNetworks: TRUSTED }]) {
      const client = clientOf(trail, options.trustedHops)
      if (isPlain(client)) assert.equal(read({ ...options, header: 'forwarded' }, trail.socket, text), client, value)
    }
  }
})

test('whatever a client prepends to the header, its address is the one that the proxies wrote', () => {
  const pieces = [
    '"',
    '\\',
    '\\"',
    ',',
    ';',
    '=',
    'for=',
    'for="',
    ' ',
    '\t',
    '[',
    ']',
    ':',
    '6.6.6.6',
    'by=',
    '\0',
    '\ud800',
    'é',
    '{',
    '%',
    '_x',
  ]
  for (let seed = 0; seed < SEEDS; seed++) {
    const random = new Random(seed + SEEDS)
    const ahead = Array.from({ length: random.integer(0, 12) }, () => random.pick(pieces)).join('')
    const list = `${ahead}, 203.0.113.7:80, 10.0.0.2`
    assert.equal(read({ trustedHops: 2 }, '10.0.0.1', list), '203.0.113.7', JSON.stringify(list))
    assert.equal(read({ trustedNetworks: TRUSTED }, '10.0.0.1', list), '203.0.113.7', JSON.stringify(list))
    const quoted = random.chance(0.5)
    const forwarded = `${ahead}, for="[2001:db8::7]:80";proto=https, ${quoted ? 'for="10.0.0.2"' : 'for=10.0.0.2'}`
    assert.equal(read({ trustedHops: 2, header: 'forwarded' }, '10.0.0.1', forwarded), '2001:db8::7', JSON.stringify(forwarded))
    const networks = { trustedNetworks: TRUSTED, header: 'forwarded' }
    assert.equal(read(networks, '10.0.0.1', forwarded), '2001:db8::7', JSON.stringify(forwarded))
  }
})

function forwardedElement(random: Random, element: string): string {
  const needsQuotes = !/^[\w.-]+$/.test(element)
  const escaped = element.replace(/./g, (unit) => (unit === '"' || unit === '\\' || random.chance(0.05) ? `\\${unit}` : unit))
  const value = needsQuotes || random.chance(0.5) ? `"${escaped}"` : element
  const others = [
    'proto=https',
    'by=10.0.0.1',
    'by="[fd00::1]:80"',
    'host="a.example, for=6.6.6.6"',
    'host="\\", for=6.6.6.6;x=\\""',
    'secret=_x;ext="\\\\"',
  ]
  const parameters = [`${random.pick(['for', 'For', 'FOR'])}=${value}`]
  for (let i = random.integer(0, 3); i > 0; i--) parameters.splice(random.integer(0, parameters.length), 0, random.pick(others))
  // A semicolon may stand without a parameter.
  return random.pick(['', '', ';', '; ;']) + parameters.join(random.pick([';', '; ', ' ; ', ';;'])) + random.pick(['', '', ';', ';;'])
}

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
    ['203.0.113.7, unknown', 'unknown'],
    ['010.0.0.1', undefined],
  ]
  for (const [text, key] of forms) assert.equal(networkOf(text), key, text)
})

test('where a proxy knows no address, that is the key, whatever the client wrote before it', () => {
  const networkOf = clientNetwork()
  // What a client sends before it would be a key of its own each time.
  for (const sent of ['198.51.100.1', 'alice', '2001:db8::1', ', ,', 'for=198.51.100.1'])
    for (const [written, key] of [
      ['unknown', 'unknown'],
      ['Unix:', 'unix:'],
      ['-', '-'],
      ['_hidden', '_hidden'],
      ['for=unknown;proto=https', 'unknown'],
      ['proto=https;for="_gazonk"', '_gazonk'],
    ] as const)
      assert.equal(networkOf(`${sent}, ${written}`), key, `${sent}, ${written}`)
  for (const sent of ['for=1', 'For="', 'for=unknown;by=_x', '"for=a', 'for="a,b"', 'for=9.9.9.9, for='])
    for (const [written, key] of [
      ['198.51.100.1', '198.51.100.1'],
      ['2001:db8:0:4217::1', '2001:db8:0:4200::/56'],
      ['for=198.51.100.1;host="a,b"', '198.51.100.1'],
    ])
      assert.equal(networkOf(`${sent}, ${written}`), key, `${sent}, ${written}`)
  assert.equal(networkOf('unknown, 198.51.100.1'), '198.51.100.1')
  for (const name of ['unknown', 'alice, unknown-2', 'a,_', 'a, unix:x']) assert.equal(networkOf(name), undefined, name)
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
