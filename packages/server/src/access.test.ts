import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Access, clientKey } from './access.js'
import { keyDisplay } from './key-display.js'

test('a token of scope decide may decide and not administer, one of scope admin both', () => {
  const access = new Access([
    { name: 'app', secret: 'app-secret', scope: 'decide' },
    { name: 'ops', secret: 'ops-secret', scope: 'admin' },
  ])
  const may = (secret: string | undefined): boolean[] => [access.allows(secret, 'decide'), access.allows(secret, 'admin')]
  assert.deepEqual(may('app-secret'), [true, false])
  assert.deepEqual(may('ops-secret'), [true, true])
  for (const wrong of [undefined, '', 'app-secre', 'app-secret ', 'APP-SECRET', 'x'.repeat(100_000)])
    assert.deepEqual(may(wrong), [false, false])
})

test('requests need a token only where one is configured for them; administration always does', () => {
  const none = new Access([])
  assert.deepEqual([none.needsToken('decide'), none.needsToken('admin'), none.has('admin')], [false, true, false])
  const admin = new Access([{ name: 'ops', secret: 's', scope: 'admin' }])
  assert.deepEqual([admin.needsToken('decide'), admin.has('decide'), admin.has('admin')], [false, true, true])
  const both = new Access([{ name: 'app', secret: 's', scope: 'decide' }])
  assert.deepEqual([both.needsToken('decide'), both.has('admin')], [true, false])
})

test('all addresses of a network are one client, and a name is itself', () => {
  assert.deepEqual(
    ['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1:443'].map((text) => clientKey(text)),
    Array(3).fill('192.0.2.1'),
  )
  const network = ['2001:db8:0:1::', '2001:db8:0:ff:ffff:ffff:ffff:ffff', '[2001:db8::2]:443'].map((text) => clientKey(text))
  assert.deepEqual(network, Array(3).fill('2001:db8::/56'))
  assert.equal(clientKey('2001:db8:0:1::7', 64), '2001:db8:0:1::/64')
  assert.deepEqual(
    ['alice', '', 'cafe::1'].map((text) => clientKey(text)),
    ['alice', '', 'cafe::1'],
  )
})

test('a pseudonym stands for one key, always the same, as long as the service runs', () => {
  const display = keyDisplay('masked')
  const keys = Array.from({ length: 2_000 }, (_, i) => `user-${i}`)
  assert.equal(new Set(keys.map(display)).size, keys.length)
  assert.deepEqual(keys.map(display), keys.map(display))
})

test('after a restart the pseudonyms differ, so that no list of them stays valid', () => {
  assert.notEqual(keyDisplay('masked')('alice'), keyDisplay('masked')('alice'))
})

test('a pseudonym contains nothing of the key, even of a short one', () => {
  const display = keyDisplay('masked')
  for (const key of ['a', 'user-42', '192.0.2.1', '\ud800']) assert.match(display(key), /^[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}$/)
  assert.notEqual(display('\ud800'), display('\ud801'))
})

const SHOWN: readonly [what: string, key: string, text: string][] = [
  ['plain text as it is', 'Zoë <b>', 'Zoë <b>'],
  ['line breaks by number', 'a\r\nb', 'a\\u{d}\\u{a}b'],
  ['characters that turn text around by number', 'a\u202eb', 'a\\u{202e}b'],
  ['invisible ones by number', 'a\u200bb', 'a\\u{200b}b'],
  ['half a surrogate pair by number', 'a\udc00', 'a\\u{dc00}'],
  ['a long key cut', 'x'.repeat(81), `${'x'.repeat(80)}…`],
  ['a pair of surrogates never cut in two', '😀'.repeat(100), `${'😀'.repeat(80)}…`],
]

for (const [what, key, text] of SHOWN) {
  test(`shown keys are ${what}`, () => assert.equal(keyDisplay('shown')(key), text))
}
