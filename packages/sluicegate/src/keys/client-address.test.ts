import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { factsOf } from 'sluicegate-testkit/keys/facts-of.js'
import { clientOf, hopTrail, TRUSTED } from 'sluicegate-testkit/keys/hop-trail.js'
import { type AddressOptions, address } from './address.js'
import type { KeyReader } from './key-reader.js'

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
