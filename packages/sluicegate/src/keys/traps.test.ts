import assert from 'node:assert/strict'
import { test } from 'node:test'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { manualClock } from '../time/clock.js'
import { address } from './address.js'
import { type KeyReader, keyOf, type RequestFacts } from './key-reader.js'
import { apiKey, compose, header, method, route, subject } from './readers.js'

/** As much of a string as address readers use; it counts how often they look. */
class CountedText {
  looks = 0
  readonly length: number
  readonly #text: string

  constructor(text: string) {
    this.#text = text
    this.length = text.length
  }

  charCodeAt(i: number): number {
    this.looks++
    return this.#text.charCodeAt(i)
  }
}

// A test for each fault seen in systems of this kind that can happen between a request and its key.

const LIMIT = 5

/** How many of the requests pass a limit of {@link LIMIT} a key. */
function passing<Request>(reader: KeyReader<Request>, requests: readonly RequestFacts[], own: (i: number) => Request): number {
  using limiter = createLimiter(tokenBucket({ limit: LIMIT, window: '1h' }), { clock: manualClock() })
  return requests.filter((facts, i) => limiter.take(keyOf(reader, facts, own(i))).allowed).length
}

const none = (): undefined => undefined
const each = (count: number, facts: (i: number) => Parameters<typeof factsOf>[0]): RequestFacts[] =>
  Array.from({ length: count }, (_, i) => factsOf(facts(i)))

test('trap: the leftmost X-Forwarded-For as the client gives anyone as many budgets as he likes', () => {
  const made = (i: number): string => `${i & 255}.${i >> 8}.1.1`
  const behindOne = each(1000, (i) => ({ remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': `${made(i)}, 203.0.113.7` } }))
  assert.equal(passing(address({ trustedHops: 1 }), behindOne, none), LIMIT)
  assert.equal(passing(address({ trustedNetworks: ['10.0.0.0/8'] }), behindOne, none), LIMIT)
  const forwarded = each(1000, (i) => ({ remoteAddress: '10.0.0.1', headers: { forwarded: `for=${made(i)}, for=203.0.113.7` } }))
  assert.equal(passing(address({ trustedHops: 1, header: 'forwarded' }), forwarded, none), LIMIT)
})

test('trap: a header that no proxy in front sets', () => {
  const names = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'x-client-ip']
  const direct = each(600, (i) => ({ remoteAddress: '203.0.113.7', headers: { [names[i % 6] as string]: `for=9.9.${i & 255}.1` } }))
  assert.equal(passing(address(), direct, none), LIMIT)
  for (const name of names) {
    const stranger = each(300, (i) => ({ remoteAddress: '203.0.113.7', headers: { [name]: `9.9.${i & 255}.1` } }))
    assert.equal(passing(address({ trustedNetworks: ['10.0.0.0/8'], header: name }), stranger, none), LIMIT, name)
  }
})

test('trap: IPv4-mapped addresses collapse into one budget under a /56', () => {
  const clients = each(256, (i) => ({ remoteAddress: `::ffff:203.0.113.${i}` }))
  assert.equal(passing(address(), [...clients, ...clients], none), 512)
  for (const same of ['::FFFF:102:304', '1.2.3.4']) {
    const client = each(100, (i) => ({ remoteAddress: i % 2 ? '::ffff:1.2.3.4' : same }))
    assert.equal(passing(address(), client, none), LIMIT)
  }
})

test('trap: IPv4 addresses behind a translator collapse into one budget under a /56', () => {
  assert.equal(
    passing(
      address(),
      each(256, (i) => ({ remoteAddress: `64:ff9b::203.0.113.${i}` })),
      none,
    ),
    256,
  )
})

test('trap: IPv6 without a subnet is 2^64 free identities, and 2^72 by the next /64', () => {
  const subscriber = (i: number): string => `2001:db8:1:42${(i & 255).toString(16).padStart(2, '0')}:${i.toString(16)}::${i.toString(16)}`
  assert.equal(
    passing(
      address(),
      each(1000, (i) => ({ remoteAddress: subscriber(i) })),
      none,
    ),
    LIMIT,
  )
  assert.equal(
    passing(
      address({ ipv6Subnet: 64 }),
      each(1000, (i) => ({ remoteAddress: subscriber(i & 3) })),
      none,
    ),
    4 * LIMIT,
  )
})

test('trap: one IPv4 address has 65,536 networks by 6to4', () => {
  const relayed = each(1000, (i) => ({ remoteAddress: `2002:cb00:7107:${i.toString(16)}::1` }))
  assert.equal(passing(address({ ipv6Subnet: 64 }), relayed, none), LIMIT)
})

test('trap: one address in many spellings', () => {
  const spellings = [
    '2001:db8::1',
    '2001:DB8::1',
    '2001:0db8:0:0:0:0:0:1',
    '[2001:db8::1]',
    '[2001:db8::1]:80',
    '2001:db8::1%eth0',
    ' 2001:db8::1\t',
  ]
  const requests = each(700, (i) => ({ remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': spellings[i % 7] as string } }))
  assert.equal(passing(address({ trustedHops: 1, ipv6Subnet: 128 }), requests, none), LIMIT)
})

test('trap: ports as part of the address give every connection a budget', () => {
  const requests = each(1000, (i) => ({ remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': `203.0.113.7:${1024 + i}` } }))
  assert.equal(passing(address({ trustedHops: 1 }), requests, none), LIMIT)
})

test('trap: an octal or short address is another one to the next reader', () => {
  for (const text of ['010.0.0.1', '127.1', '0x7f.0.0.1', '2130706433']) {
    const facts = factsOf({ remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': text } })
    assert.equal(keyOf(address({ trustedHops: 1 }), facts, undefined), '10.0.0.1', text)
  }
})

test('trap: __proto__ and other names of object properties as keys', () => {
  const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']
  for (const name of names) {
    const facts = factsOf({
      method: name,
      route: name,
      remoteAddress: name,
      headers: { 'x-forwarded-for': name, forwarded: `for=${name}`, 'x-api-key': name, x: name },
    })
    assert.equal(keyOf(header('x'), facts, undefined), `header:x:${name}`)
    assert.equal(keyOf(compose(route(), method()), facts, undefined), `route:${name}|method:other`)
    assert.match(keyOf(apiKey(), facts, undefined), /^key:[\w-]{22}$/)
    assert.equal(
      keyOf(
        subject(() => name),
        facts,
        undefined,
      ),
      `subject:${name}`,
    )
    assert.equal(address({ trustedHops: 1 }).read(facts, undefined), undefined)
    assert.equal(address({ trustedHops: 1, header: 'forwarded' }).read(facts, undefined), undefined)
    assert.throws(() => header('x', { [name]: 1 } as never), { code: 'OPTION_UNKNOWN', option: name })
  }
  assert.equal(Object.keys(Object.prototype).length, 0)
})

test('trap: megabyte keys are hashed, and differ by their last unit', () => {
  const long = 'x'.repeat(1 << 20)
  const readers = [header('x'), subject((request: string) => request), compose(header('x'), route())]
  for (const reader of readers) {
    const keyOfText = (text: string): string => keyOf(reader, factsOf({ headers: { x: text }, route: text }), text)
    // Each part by itself, where there are several.
    assert.match(keyOfText(long), /^sha256:[\w-]{43}(\|sha256:[\w-]{43})?$/, reader.name)
    assert.notEqual(keyOfText(long), keyOfText(`${long.slice(1)}y`), reader.name)
    assert.equal(
      passing(
        reader,
        each(LIMIT + 2, () => ({ headers: { x: long }, route: long })),
        () => long,
      ),
      LIMIT,
      reader.name,
    )
  }
})

test('trap: lone surrogates become one replacement character, and their keys one', () => {
  const texts = ['\ud800', '\ud801', '\udbff', '\udc00', '\ufffd', '\ud800\udc00', '\udc00\ud800']
  for (const pad of ['', 'x'.repeat(2000)]) {
    for (const reader of [header('x'), apiKey({ header: 'x' }), compose(header('x'), header('x'))]) {
      const keys = texts.map((text) => keyOf(reader, factsOf({ headers: { x: text + pad } }), undefined))
      assert.equal(new Set(keys).size, texts.length, reader.name)
    }
  }
})

test('trap: parts of a key joined by a separator that clients can write', () => {
  const key = (a: string, b: string): string => keyOf(compose(header('a'), header('b')), factsOf({ headers: { a, b } }), undefined)
  assert.notEqual(key('a_b', 'c'), key('a', 'b_c'))
  assert.notEqual(key('a|header:b:b', 'c'), key('a', 'b|header:b:c'))
  assert.notEqual(key('a\\', 'b'), key('a', '\\b'))
})

test('trap: a key that identifies no client silently gives all clients one budget', () => {
  const facts = factsOf({ remoteAddress: '10.0.0.1', headers: { 'x-forwarded-for': 'unknown' } })
  for (const reader of [apiKey(), header('x-tenant'), subject(() => undefined), apiKey({ header: 'authorization' })]) {
    assert.throws(() => keyOf(reader, facts, undefined), { code: 'KEY_MISSING' }, reader.name)
  }
  const found: string[] = []
  const reader = address({ trustedHops: 1, onFallback: (reason) => void found.push(reason) })
  assert.equal(keyOf(reader, facts, undefined), '10.0.0.1')
  assert.deepEqual(found, ['unreadable'])
})

test('trap: secrets in keys, messages and names', () => {
  const secret = 'the secret of the whole fleet'
  const reader = apiKey({ secret })
  const shown = JSON.stringify(reader) + reader.name + keyOf(reader, factsOf({ headers: { 'x-api-key': 'sk_live_123456' } }), undefined)
  assert.ok(!shown.includes('secret') && !shown.includes('sk_live'))
})

test('trap: a header of megabytes, of thousands of hops or of quotes costs bounded work and names the socket', () => {
  const junk = [
    'x'.repeat(1 << 20),
    ','.repeat(1 << 20),
    '10.0.0.1, '.repeat(100_000),
    '"'.repeat(1 << 20),
    '\\'.repeat(1 << 20),
    `for="${'\\"'.repeat(1 << 19)}"`,
    'for=10.0.0.1;'.repeat(80_000),
    `${'for=10.0.0.1,'.repeat(80_000)}\0`,
    ':'.repeat(1 << 20),
    '%'.repeat(1 << 20),
    '\0\x01\x7f\r\n'.repeat(1 << 18),
  ]
  for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
    for (const trust of [{ trustedHops: 1 }, { trustedHops: 32 }, { trustedNetworks: ['10.0.0.0/8'] }]) {
      for (const text of junk) {
        const counted = new CountedText(text)
        const facts: RequestFacts = { ...factsOf({ remoteAddress: '10.0.0.1' }), header: () => counted as never }
        assert.equal(address({ ...trust, header: name }).read(facts, undefined), '10.0.0.1', `${name}: ${text.slice(0, 20)}`)
        assert.ok(counted.looks <= 150_000, `${counted.looks} looks at ${name}: ${text.slice(0, 20)}`)
      }
    }
  }
})
