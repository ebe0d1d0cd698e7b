import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AllOfSpec } from './oracle.js'
import { oracleFor } from './versioned-oracle.js'

const BOTH: AllOfSpec = {
  algorithm: 'all-of',
  parts: [
    { algorithm: 'gcra', limit: 10, windowMs: 1000, burst: 10 },
    { algorithm: 'fixed-window', limit: 15, windowMs: 60_000 },
  ],
}

function answer(allowed: boolean, remaining: number, retryAfterMs: number, resetAfterMs: number, limit: number) {
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs }
}

test('all are charged or none', () => {
  const oracle = oracleFor(BOTH)
  oracle.take('k', 10, 0)
  for (let i = 0; i < 50; i++) assert.equal(oracle.take('k', 1, 0).allowed, false)
  assert.deepEqual(oracle.peek('k', 1, 1000).parts, [answer(true, 10, 0, 0, 10), answer(true, 5, 0, 59_000, 15)])
})

test('allowed, the part with the least left speaks, of equals the first', () => {
  const oracle = oracleFor(BOTH)
  const { parts: _, ...first } = oracle.take('k', 4, 0)
  assert.deepEqual(first, answer(true, 6, 0, 60_000, 10))
  oracle.take('k', 6, 500)
  const { parts: __, ...second } = oracle.take('k', 3, 2000)
  assert.deepEqual(second, answer(true, 2, 0, 58_000, 15))
})

test('denied, of the parts that deny the one with the longest wait speaks', () => {
  const oracle = oracleFor(BOTH)
  oracle.take('k', 10, 0)
  const { parts, ...denied } = oracle.take('k', 6, 0)
  assert.deepEqual(denied, answer(false, 5, 60_000, 60_000, 15))
  assert.deepEqual(parts, [answer(false, 0, 600, 1000, 10), answer(false, 5, 60_000, 60_000, 15)])
  assert.equal(oracle.take('k', 11, 0).retryAfterMs, Number.POSITIVE_INFINITY)
})

test('each part has its own keys', () => {
  const oracle = oracleFor(BOTH)
  oracle.take(['user 1', 'team'], 10, 0)
  assert.equal(oracle.take(['user 2', 'team'], 10, 0).allowed, false)
  assert.equal(oracle.take(['user 2', 'team'], 5, 0).allowed, true)
  assert.equal(oracle.take(['team', 'user 1'], 10, 0).allowed, true)
  assert.throws(() => oracle.take(['user 1'], 1, 0), RangeError)
})

test('what does not pass now in every part is not booked', () => {
  const oracle = oracleFor(BOTH)
  const booking = oracle.reserve('k', 10, 0)
  assert.deepEqual([booking.allowed, booking.waitMs], [true, 0])
  assert.deepEqual([oracle.reserve('k', 1, 0).allowed, oracle.reserve('k', 1, 0).waitMs], [false, 100])
  const { parts } = oracle.cancel(booking, 4, 0)
  assert.deepEqual(parts, [answer(true, 4, 0, 600, 10), answer(true, 9, 0, 60_000, 15)])
})

test('a copy goes its own way, and says where it stands', () => {
  const oracle = oracleFor(BOTH)
  oracle.take('k', 1, 0)
  const copy = oracle.copy()
  assert.equal(copy.stateTextOf('k'), oracle.stateTextOf('k'))
  copy.take('k', 1, 0)
  assert.notEqual(copy.stateTextOf('k'), oracle.stateTextOf('k'))
  copy.forget('k')
  assert.equal(copy.stateTextOf('k'), oracleFor(BOTH).stateTextOf('k'))
})
