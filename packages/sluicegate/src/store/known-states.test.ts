import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KnownStates } from './known-states.js'

/** Of the smallest states: larger ones fill their memory with fewer. */
const KEYS = 90_000

test('the states that are kept take bounded memory, and the keys used last are among them', () => {
  const known = new KnownStates()
  const state = (size: number) => ({ value: new Uint8Array(size), version: 1, nowUs: 0 })
  for (const size of [0, 150, 4096]) {
    const value = state(size)
    const keys = size === 0 ? KEYS : KEYS / 3
    for (let i = 0; i < keys; i++) known.keep(`key ${i}`, value)
    let kept = 0
    for (let i = 0; i < keys; i++) if (known.of(`key ${i}`) !== undefined) kept++
    assert.ok(kept > 1500 && kept * (size + 250) < 17 * 1024 * 1024, `${kept} of ${size} bytes`)
    assert.ok(known.of(`key ${keys - 1}`) !== undefined)
  }
  known.keep('large', state(4097))
  assert.equal(known.of('large'), undefined)
})
