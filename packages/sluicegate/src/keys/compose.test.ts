import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { factsOf } from 'sluicegate-testkit/keys/address-corpus.js'
import { address } from './address.js'
import { type KeyReader, keyOf } from './key-reader.js'
import { compose, header, method, route, subject } from './readers.js'

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
  assert.throws(() => compose(...Array.from({ length: 9 }, method)), { code: 'OPTION_INVALID', option: 'readers' })
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
