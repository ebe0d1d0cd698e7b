import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { address } from './address.js'
import { fittedKey, type KeyReader, keyOf } from './key-reader.js'
import { type ApiKeyOptions, apiKey, compose, header, method, route, type Subject, subject } from './readers.js'

const SECRET_KEY = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'

function read(reader: KeyReader, headers: Readonly<Record<string, string>> = {}): string | undefined {
  return reader.read(factsOf({ headers, remoteAddress: '203.0.113.7' }), undefined)
}

test('an API key is not to be seen in its key, which is the same everywhere', () => {
  const key = read(apiKey(), { 'x-api-key': SECRET_KEY })
  const digest = createHmac('sha256', 'sluicegate: keys of API keys').update(SECRET_KEY).digest().subarray(0, 16)
  assert.equal(key, `key:${digest.toString('base64url')}`)
  assert.equal(read(apiKey({ header: 'X-Token' }), { 'x-token': ` ${SECRET_KEY} ` }), key)
  assert.notEqual(read(apiKey(), { 'x-api-key': `${SECRET_KEY}.` }), key)
})

test('a secret makes other keys of API keys', () => {
  const secret = 'a secret of the whole fleet'
  const digest = createHmac('sha256', secret).update(SECRET_KEY).digest().subarray(0, 16)
  assert.equal(read(apiKey({ secret }), { 'x-api-key': SECRET_KEY }), `key:${digest.toString('base64url')}`)
})

test('a secret that is too short is refused and not repeated', () => {
  for (const secret of ['', 'fifteen letters', 5, null]) {
    assert.throws(
      () => apiKey({ secret: secret as never }),
      (error: Error & { code: string; value: unknown }) => {
        assert.equal(error.code, 'OPTION_INVALID')
        assert.ok(secret === '' || secret === null || !`${error.message}${error.value}`.includes(String(secret)))
        return true
      },
    )
  }
})

test('a bearer token is one key however its scheme is spelt, and other schemes have none', () => {
  const reader = apiKey({ header: 'authorization' })
  const key = read(apiKey(), { 'x-api-key': SECRET_KEY })
  for (const scheme of ['Bearer ', 'bearer ', 'BEARER   ', ' Bearer \t', 'Bearer\t', 'Bearer\xa0']) {
    assert.equal(read(reader, { authorization: `${scheme}${SECRET_KEY} ` }), key, scheme)
  }
  for (const ending of [' 1', '\t1', ',', ', Bearer another', '\xa0x']) {
    assert.equal(read(reader, { authorization: `Bearer ${SECRET_KEY}${ending}` }), key, ending)
  }
  for (const value of ['Bearer', 'Bearer ', 'Bearer ,', 'Basic dXNlcjpwYXNz', SECRET_KEY, '', `Bearer${SECRET_KEY}`]) {
    assert.equal(read(reader, { authorization: value }), undefined, value)
  }
})

test('a header is the key under its name; absent or empty it is none', () => {
  assert.equal(read(header('X-Tenant'), { 'x-tenant': ' acme ' }), 'header:x-tenant:acme')
  assert.equal(read(header('x-tenant')), undefined)
  assert.equal(read(header('x-tenant'), { 'x-tenant': ' ' }), undefined)
  assert.throws(() => header('x tenant'), { code: 'OPTION_INVALID', option: 'name' })
  assert.throws(() => header(''), { code: 'OPTION_INVALID', option: 'name' })
})

test('a subject is text or a number; null, undefined and empty text are none; anything else is refused', () => {
  const keyFor = (found: unknown): string | undefined => read(subject(() => found as Subject))
  assert.deepEqual(
    [keyFor('ann'), keyFor(42), keyFor('42'), keyFor(42n), keyFor(0)],
    ['subject:ann', 'subject:42', 'subject:42', 'subject:42', 'subject:0'],
  )
  assert.deepEqual([keyFor(undefined), keyFor(null), keyFor('')], [undefined, undefined, undefined])
  for (const found of [{}, [], { toString: () => 'ann' }, Number.NaN, true, Symbol('ann'), Promise.resolve('ann')]) {
    assert.throws(() => keyFor(found), { code: 'KEY_INVALID', option: 'subject' })
  }
  assert.throws(() => subject('ann' as never), { code: 'OPTION_INVALID', option: 'read' })
})

test('a subject is read from the framework’s own request', () => {
  const reader = subject((request: { auth?: { sub: string } }) => request.auth?.sub, { otherwise: address() })
  const facts = factsOf({ remoteAddress: '203.0.113.7' })
  assert.equal(keyOf(reader, facts, { auth: { sub: 'ann' } }), 'subject:ann')
  assert.equal(keyOf(reader, facts, {}), '203.0.113.7')
})

test('a route is its pattern; where none matched all requests are one', () => {
  assert.equal(route().read(factsOf({ route: '/users/:id', path: '/users/1' }), undefined), 'route:/users/:id')
  assert.equal(route().read(factsOf({ path: '/a' }), undefined), 'route')
  assert.equal(route().read(factsOf({ route: '', path: '/b' }), undefined), 'route')
  assert.equal(route().read(factsOf({ route: '*' }), undefined), 'route:*')
})

test('HEAD counts as GET, and made-up methods are one', () => {
  const keyFor = (name: string): string | undefined => method().read(factsOf({ method: name }), undefined)
  assert.deepEqual(['GET', 'HEAD', 'POST', 'QUERY'].map(keyFor), ['method:GET', 'method:GET', 'method:POST', 'method:QUERY'])
  for (const name of ['get', 'FOO', 'BAR', '', '__proto__', 'other']) assert.equal(keyFor(name), 'method:other')
})

test('no key of one kind is one of another, whatever clients send', () => {
  const taunt = ['203.0.113.7', '2001:db8::/56', 'subject:ann', 'key:x', 'method:GET', 'route', 'x', '|', '\\']
  const keys = taunt.flatMap((value) => [
    value === '203.0.113.7' ? value : `address ${value}`,
    read(header('x'), { x: value }),
    read(header('x-y'), { 'x-y': value }),
    read(apiKey({ header: 'x' }), { x: value }),
    read(subject(() => value)),
    route().read(factsOf({ route: value }), undefined),
  ])
  assert.equal(new Set(keys).size, keys.length)
})

test('otherwise is asked where a request has no such key, and its own otherwise after it', () => {
  const reader = apiKey({ otherwise: header('x-tenant', { otherwise: address() }) })
  assert.match(read(reader, { 'x-api-key': 'k', 'x-tenant': 'acme' }) as string, /^key:/)
  assert.equal(read(reader, { 'x-tenant': 'acme' }), 'header:x-tenant:acme')
  assert.equal(read(reader), '203.0.113.7')
  assert.equal(reader.name, 'apiKey(x-api-key) or header(x-tenant) or address()')
  const options: ApiKeyOptions = { otherwise: 'address' as never }
  assert.throws(() => apiKey(options), { code: 'OPTION_INVALID', option: 'otherwise', value: 'address' })
  assert.throws(() => apiKey({ otherwise: null as never }), { code: 'OPTION_INVALID', option: 'otherwise' })
})

test('a reader of one’s own is as good; without a key it is refused by its name', () => {
  const facts = factsOf({ path: '/secret' })
  assert.equal(keyOf({ name: 'mine', read: ({ path }) => path }, facts, undefined), '/secret')
  for (const key of [undefined, '', 5, null]) {
    const mine: KeyReader = { name: 'mine', read: () => key as never }
    assert.throws(() => keyOf(mine, facts, undefined), {
      code: 'KEY_MISSING',
      option: 'key',
      value: key,
      message: /^key: mine found no key/,
    })
  }
})

const part = (key: string | undefined): KeyReader => ({ name: 'part', read: () => key })
const composed = (...parts: readonly (string | undefined)[]): string | undefined => compose(...parts.map(part)).read(factsOf(), undefined)

test('parts stand beside each other, readable', () => {
  const facts = factsOf({ remoteAddress: '::ffff:203.0.113.7', method: 'POST', route: '/login' })
  assert.equal(keyOf(compose(address(), method(), route()), facts, undefined), '203.0.113.7|method:POST|route:/login')
})

test('other parts make another key, whatever they hold and however they are nested', () => {
  const seen = new Map<string, string>()
  const pieces = ['|', '\\', 'a', 'b', '||', '\\|', '|\\', '\\\\', ':', '_', '\0', '\ud800', '\udc00', '{', '}', 'sha256:']
  for (let seed = 0; seed < 20_000; seed++) {
    const random = new Random(seed)
    const parts = Array.from({ length: random.integer(2, 4) }, () =>
      Array.from({ length: random.integer(1, 3) }, () => random.pick(pieces)).join(''),
    )
    const key = composed(...parts) as string
    const what = JSON.stringify(parts)
    assert.equal(seen.get(key) ?? what, what, key)
    seen.set(key, what)
    const [first = '', second = '', ...rest] = parts
    if (rest.length > 0) assert.notEqual(composed(composed(first, second), ...rest), key)
  }
  assert.ok(seen.size > 5000)
})

test('parts can be parsed from a composed key, at its unescaped separators', () => {
  for (let seed = 0; seed < 2000; seed++) {
    const random = new Random(seed)
    const parts = Array.from({ length: random.integer(2, 8) }, () =>
      String.fromCharCode(
        ...Array.from({ length: random.integer(1, 6) }, () => random.pick([0x7c, 0x5c, 0x61, random.integer(0, 0xffff)])),
      ),
    )
    assert.deepEqual(taken(composed(...parts) as string), parts)
  }
})

test('long keys stay apart by any of their units, and fit', () => {
  const long = 'x'.repeat(600)
  const keys = [composed(long, long), composed(`${long}x`, long), composed(long, `${long}x`), composed(long, `${long.slice(1)}y`)]
  assert.equal(new Set(keys).size, 4)
  for (const key of keys) assert.match(key as string, /^sha256:[\w-]{43}$/)
  assert.equal(composed('x'.repeat(511), 'x'.repeat(512))?.length, 1024)
})

test('a part without a key leaves the whole without; a part has an otherwise of its own', () => {
  assert.equal(composed('a', undefined), undefined)
  assert.equal(composed('', 'a'), undefined)
  const user = subject((request: { user?: string }) => request.user, { otherwise: address() })
  const key = compose(user, method())
  const facts = factsOf({ remoteAddress: '203.0.113.7' })
  assert.equal(keyOf(key, facts, { user: 'ann' }), 'subject:ann|method:GET')
  assert.equal(keyOf(key, facts, {}), '203.0.113.7|method:GET')
  const strict = compose(header('x-tenant'), method())
  assert.throws(() => keyOf(strict, facts, {}), { code: 'KEY_MISSING', message: /compose\(header\(x-tenant\), method\(\)\) found no key/ })
})

test('fewer than two readers, more than eight, and what is no reader are refused', () => {
  assert.throws(() => compose(), { code: 'OPTION_INVALID', option: 'readers' })
  assert.throws(() => compose(method()), { code: 'OPTION_INVALID', option: 'readers' })
  assert.throws(() => compose(...Array.from({ length: 9 }, () => method())), { code: 'OPTION_INVALID', option: 'readers' })
  assert.throws(() => compose(method(), (() => 'x') as never), { code: 'OPTION_INVALID', option: 'readers[1]' })
  assert.throws(() => compose(method(), 'x' as never), { code: 'OPTION_INVALID', option: 'readers[1]' })
})

/** The parts of a composed key. */
function taken(key: string): string[] {
  const parts = ['']
  for (let i = 0; i < key.length; i++) {
    if (key[i] === '|') parts.push('')
    else parts.push((parts.pop() as string) + (key[i] === '\\' ? key[++i] : key[i]))
  }
  return parts
}

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
