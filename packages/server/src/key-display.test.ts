import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyDisplay } from './key-display.js'

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
