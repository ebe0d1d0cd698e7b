import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { address } from './address.js'
import { fittedKey, type KeyReader, keyOf } from './key-reader.js'
import { apiKey, compose, header, method, route, subject } from './readers.js'

interface Asked {
  readonly reader: KeyReader
  readonly key: string
  /** Whose key it is, in a form that is surely injective. */
  readonly whose: unknown
}

const PIECES = [
  '|',
  '\\',
  '\\|',
  ':',
  'a',
  'ada',
  'x-user',
  'header:',
  'subject:',
  'method:GET',
  'route',
  'route:',
  'key:',
  'sha256:',
  '203.0.113.7',
]

/** A value that a client made up; now and then a key that was seen, or one too long for a limiter. */
function hostile(random: Random, seen: readonly string[]): string {
  if (seen.length > 0 && random.chance(0.15)) return random.pick(seen)
  if (random.chance(0.05)) return random.pick(PIECES).repeat(1_100)
  return Array.from({ length: random.integer(1, 4) }, () => random.pick(PIECES)).join('')
}

function single(random: Random, seen: readonly string[]): Asked {
  const value = hostile(random, seen)
  const ask = (reader: KeyReader, facts: Parameters<typeof factsOf>[0], kind: string, own: string): Asked => ({
    reader,
    key: keyOf(reader, factsOf(facts), undefined),
    whose: [kind, own],
  })
  switch (random.integer(0, 5)) {
    case 0: {
      const name = random.pick(['x-user', 'x|user', 'x-user|method'])
      return ask(header(name), { headers: { [name]: value } }, `header ${name}`, value.trim())
    }
    case 1:
      return ask(
        subject(() => value),
        {},
        'subject',
        value,
      )
    case 2:
      return ask(route(), { route: value }, 'route', value)
    case 3: {
      const name = random.pick(['GET', 'POST', 'MADE|UP'])
      return ask(method(), { method: name }, 'method', name === 'MADE|UP' ? 'other' : name)
    }
    case 4: {
      const remoteAddress = random.pick(['203.0.113.7', '203.0.113.8', '2001:db8::1'])
      return ask(address(), { remoteAddress }, 'address', remoteAddress)
    }
    default:
      return ask(apiKey(), { headers: { 'x-api-key': value } }, 'api key', value.trim())
  }
}

function asked(random: Random, seen: readonly string[], depth = 2): Asked {
  if (depth === 0 || random.chance(0.4)) return single(random, seen)
  const parts = Array.from({ length: random.integer(2, 3) }, () => asked(random, seen, depth - 1))
  const readers = parts.map(({ reader, key }): KeyReader => ({ name: reader.name, read: () => key }))
  return { reader: compose(...readers), key: keyOf(compose(...readers), factsOf(), undefined), whose: parts.map(({ whose }) => whose) }
}

const KEYS = shortOrLong(8_000, 30_000)

test('no key of readers, however they are composed, is that of another, whatever clients send', () => {
  const random = new Random(20_261_122)
  const seen = new Map<string, string>()
  const keys: string[] = []
  for (let i = 0; i < KEYS; i++) {
    const { key, whose } = asked(random, keys)
    const owner = JSON.stringify(whose)
    assert.equal(seen.get(key) ?? owner, owner, key)
    assert.ok(key.length <= 1_024)
    if (!seen.has(key) && keys.length < 2_000) keys.push(key)
    seen.set(key, owner)
  }
  assert.ok(seen.size > KEYS / 3, `only ${seen.size} keys`)
})

test('the value of one header is never the key of a header and a method', () => {
  const user = header('x-user')
  const of = (reader: KeyReader, value: string): string => keyOf(reader, factsOf({ headers: { 'x-user': value } }), undefined)
  assert.equal(of(compose(user, method()), 'ada'), 'header:x-user:ada|method:GET')
  assert.notEqual(of(user, 'ada|method:GET'), of(compose(user, method()), 'ada'))
  assert.equal(of(user, 'ada'), 'header:x-user:ada', 'a value without a bar is written as it is')
})

test('a short key that looks like the digest of a long one is another key', () => {
  const digest = fittedKey('x'.repeat(2_000))
  assert.match(digest, /^sha256:[\w-]{43}$/)
  assert.notEqual(fittedKey(digest), digest)
  assert.equal(fittedKey('sha256:short'), 'sha256:short')
  const long = header('x-user')
  const key = keyOf(long, factsOf({ headers: { 'x-user': 'x'.repeat(2_000) } }), undefined)
  assert.equal(key, long.read(factsOf({ headers: { 'x-user': 'x'.repeat(2_000) } }), undefined), 'a digest is not digested again')
})
