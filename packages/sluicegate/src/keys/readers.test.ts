import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { test } from 'node:test'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { address } from './address.js'
import { type KeyReader, keyOf } from './key-reader.js'
import { type ApiKeyOptions, apiKey, header, method, route, type Subject, subject } from './readers.js'

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
