import assert from 'node:assert/strict'
import { BlockList, isIP, isIPv4 } from 'node:net'
import { test } from 'node:test'
import ipaddr from 'ipaddr.js'
import { Random } from 'sluicegate-testkit'
import { addressCorpus } from 'sluicegate-testkit/keys/address-corpus.js'
import { addressKey } from './address.js'
import { misspelt, spelledAddress } from './client-address.test.js'
import { identifiedAddress } from './hop-list.js'
import { checkedNetworks, type IpAddress, ipText, isIn, parsedAddress } from './ip-address.js'

const SEEDS = 3000
const corpus = addressCorpus()
/** The same addresses in every run. */
const spelled = Array.from({ length: SEEDS }, (_, seed) => spelledAddress(new Random(seed)))
const misspellings = spelled.map(({ text }, seed) => misspelt(new Random(seed + SEEDS), text))

test('the corpus has thousands of different texts, addresses and others', () => {
  assert.ok(new Set(spelled.map(({ text }) => text)).size >= 2000)
  assert.ok(new Set(misspellings).size >= 2000)
  const refused = misspellings.filter((text) => parsedAddress(text) === undefined).length
  assert.ok(refused > SEEDS / 4 && refused < SEEDS, `${refused} of ${SEEDS} are no addresses`)
})

for (const [text, canonical] of corpus.addresses) {
  test(`${text} is ${canonical}`, () => assert.equal(textOf(parsedAddress(text)), canonical))
}

test('what is no address is none, by net.isIP as well', () => {
  for (const text of corpus.noAddresses) {
    assert.equal(parsedAddress(text), undefined, JSON.stringify(text))
    assert.equal(isIP(text), 0, JSON.stringify(text))
  }
})

test('octal, hexadecimal and short forms are no addresses: here ipaddr.js differs, net.isIP agrees', () => {
  for (const [text, why] of corpus.differencesFromIpaddr) {
    assert.equal(ipaddr.isValid(text), true, `${text}: ${why}`)
    assert.equal(parsedAddress(text), undefined, `${text}: ${why}`)
    assert.equal(isIP(text), 0, `${text}: ${why}`)
  }
})

test('every spelling of an address has its bits, as ipaddr.js reads them, and the text of RFC 5952', () => {
  for (const { text, bytes } of spelled) {
    const address = parsedAddress(text)
    assert.deepEqual(address && bytesOf(address), bytes, text)
    // Zones of names with an underscore are RFC 6874's, and unknown to ipaddr.js.
    const other = ipaddr.process(text.replace(/%.*/, ''))
    assert.deepEqual(other.kind() === 'ipv4' ? bytes.slice(12) : bytes, other.toByteArray(), text)
    assert.equal(textOf(address), other instanceof ipaddr.IPv6 ? other.toRFC5952String() : other.toString(), text)
  }
})

test('an address is invalid where net.isIP and ipaddr.js agree, but for forms that only ipaddr.js accepts', () => {
  for (const text of misspellings) {
    // How a zone is written differs from one version of Node.js to the next.
    if (text.includes('%')) continue
    const address = parsedAddress(text)
    assert.equal(address !== undefined, isIP(text) !== 0, JSON.stringify(text))
    if (address !== undefined) assert.deepEqual(ipaddr.process(text).toByteArray(), ownBytes(address), text)
    else if (ipaddr.isValid(text)) assert.ok(isLooseIpv4(text), `${JSON.stringify(text)} is an address to ipaddr.js alone`)
  }
})

test('an address survives its own text', () => {
  for (const { text } of spelled) {
    const address = parsedAddress(text)
    assert.ok(address !== undefined)
    assert.deepEqual(parsedAddress(ipText(address)), address)
  }
})

test('an address is in a network exactly if net.BlockList contains it', () => {
  for (const [seed, { text }] of spelled.entries()) {
    const random = new Random(seed + 2 * SEEDS)
    const plain = text.replace(/%.*/, '')
    const address = parsedAddress(plain) as IpAddress
    const bits = random.integer(8, isIPv4(ipText(address)) ? 32 : 128)
    const other = random.chance(0.9) ? nearby(random, address, bits) : (parsedAddress(random.pick(spelled).text) as IpAddress)
    const family = isIPv4(ipText(other)) ? 'ipv4' : 'ipv6'
    if (family === 'ipv4' && bits > 32) continue
    const [first = '', prefix] = subnetOf(other, bits).split('/')
    // All of IPv4 is in it, mapped: it is refused.
    if (first === '::' && bits <= 80) continue
    const blocked = new BlockList()
    blocked.addSubnet(first, bits, family)
    const [network] = checkedNetworks('networks', [prefix === undefined ? first : `${first}/${bits}`])
    assert.ok(network)
    assert.equal(
      isIn(network, address),
      blocked.check(ipText(address), isIPv4(ipText(address)) ? 'ipv4' : 'ipv6'),
      `${text} in ${first}/${bits}`,
    )
    assert.equal(isIn(network, other), true, `${ipText(other)} in ${first}/${bits}`)
  }
})

test('a key names the subnet of net.BlockList, and two addresses share it just when they are in it', () => {
  for (const [seed, { text }] of spelled.entries()) {
    const random = new Random(seed + 2 * SEEDS)
    const address = parsedAddress(text) as IpAddress
    // Translators and 6to4 are counted by IPv4 addresses.
    if (/^(64:ff9b::|2002:)/.test(ipText(address))) continue
    const ipv6Bits = random.pick([32, 47, 48, 56, 60, 64, 127, 128])
    const ipv4Bits = random.pick([8, 16, 24, 31, 32])
    const isFour = isIPv4(ipText(address))
    const key = addressKey(address, ipv4Bits, ipv6Bits)
    const [first = '', bits = isFour ? '32' : '128'] = key.split('/')
    assert.equal(Number(bits), isFour ? ipv4Bits : ipv6Bits, key)
    const subnet = new BlockList()
    subnet.addSubnet(first, Number(bits), isFour ? 'ipv4' : 'ipv6')
    const other = nearby(random, address, isFour ? ipv4Bits : ipv6Bits)
    for (const each of [address, other]) {
      const shared = subnet.check(ipText(each), isIPv4(ipText(each)) ? 'ipv4' : 'ipv6')
      assert.equal(addressKey(each, ipv4Bits, ipv6Bits) === key, shared, `${ipText(each)} and ${key}`)
    }
  }
})

for (const [text, canonical] of corpus.identifiers) {
  test(`what a proxy writes as ${JSON.stringify(text)} is ${canonical === '-' ? 'no address' : canonical}`, () => {
    assert.equal(textOf(identifiedAddress(text, 0, text.length)) ?? '-', canonical)
  })
}

test('only what stands between two places of a text is read', () => {
  for (const { text } of spelled) {
    const around = `1${text}1`
    assert.deepEqual(parsedAddress(around, 1, text.length + 1), parsedAddress(text))
    assert.deepEqual(identifiedAddress(around, 1, text.length + 1), identifiedAddress(text, 0, text.length))
  }
})

function textOf(address: IpAddress | undefined): string | undefined {
  return address && ipText(address)
}

function bytesOf({ a, b, c, d }: IpAddress): number[] {
  return [a, b, c, d].flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255])
}

/** As many as its own family has. */
function ownBytes(address: IpAddress): number[] {
  return isIPv4(ipText(address)) ? bytesOf(address).slice(12) : bytesOf(address)
}

function subnetOf(address: IpAddress, bits: number): string {
  const bytes = ownBytes(address)
  const kept = bytes.map((byte, i) => byte & ((0xff00 >> Math.min(8, Math.max(0, bits - 8 * i))) & 255))
  const text = ipaddr.fromByteArray(kept).toString()
  return bits === 8 * bytes.length ? text : `${text}/${bits}`
}

/** With one bit changed, of those that its family has: mostly the last one that counts of `bits`, or the first that does not. */
function nearby(random: Random, address: IpAddress, bits: number): IpAddress {
  const bytes = ownBytes(address)
  const most = 8 * bytes.length - 1
  const at = Math.min(most, random.pick([bits - 1, bits, random.integer(0, most)]))
  bytes[at >> 3] = (bytes[at >> 3] as number) ^ (0x80 >> (at & 7))
  return parsedAddress(ipaddr.fromByteArray(bytes).toString()) as IpAddress
}

/** Four numbers or fewer, each as C would read it: what RFC 3986, section 7.4, warns of. Also behind an IPv6 address. */
function isLooseIpv4(text: string): boolean {
  return /^(::ffff:|::|[0-9a-f:]*:)?(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+)){0,3}$/i.test(text)
}
