import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FixedWindowOracle } from './fixed-window-oracle.js'
import { answersOf } from './oracle.js'

const TEN_A_SECOND = { algorithm: 'fixed-window', limit: 10, windowMs: 1000 } as const

const answer = answersOf(10)

test('a window gives its limit, whenever in it a key comes first, and the next one again', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 9, 700), answer(true, 1, 0, 300))
  assert.deepEqual(oracle.take('k', 2, 999.999), answer(false, 1, 1, 1))
  assert.deepEqual(oracle.take('k', 10, 1000), answer(true, 0, 0, 1000))
})

test('a cost above the limit never passes and costs nothing', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 11, 0), answer(false, 10, Number.POSITIVE_INFINITY, 0))
  assert.deepEqual(oracle.peek('k', 10, 0), answer(true, 10, 0, 0))
})

test('after a step back a key is closed until its window begins, also when nothing counts in it', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 3, 2500)
  assert.deepEqual(oracle.take('k', 1, 1999), answer(false, 0, 1, 1001))
  assert.deepEqual(oracle.take('k', 8, 1999), answer(false, 0, 1001, 1001))
  assert.deepEqual(oracle.refund('k', 5, 0), answer(false, 0, 2000, 2000))
  assert.deepEqual(oracle.take('k', 10, 2000), answer(true, 0, 0, 1000))
})

test('a penalty stops at ten limits below empty and ends with its window', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.penalize('k', 1_000_000, 0), answer(false, 0, 1000, 1000))
  assert.deepEqual(oracle.refund('k', 101, 0), answer(true, 1, 0, 1000))
  assert.deepEqual(oracle.peek('k', 10, 1000), answer(true, 10, 0, 0))
})

test('a refund is of the window at hand', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  oracle.refund('k', 5, 1000)
  assert.deepEqual(oracle.take('k', 10, 1000), answer(true, 0, 0, 1000))
})

test('after a reset a key was never seen, also after a step back', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 5000)
  oracle.block('k', 1000, 5000)
  assert.deepEqual(oracle.reset('k', 5000), answer(true, 10, 0, 0))
  assert.deepEqual(oracle.take('k', 10, 4000), answer(true, 0, 0, 1000))
})

test('a booking that does not pass goes to the next window that has room; what it skips is not used', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 6, 300)
  const [first, second, third] = [oracle.reserve('k', 6, 300), oracle.reserve('k', 4, 300), oracle.reserve('k', 1, 300)]
  assert.deepEqual([first.waitMs, second.waitMs, third.waitMs], [700, 700, 1700])
  assert.deepEqual([first.atUs, second.atUs, third.atUs], [1_000_000n, 1_000_000n, 2_000_000n])
  assert.deepEqual(oracle.take('k', 1, 300), answer(false, 0, 1700, 2700))
  assert.deepEqual(oracle.take('k', 1, 1500), answer(false, 0, 500, 1500))
  assert.deepEqual(oracle.take('k', 9, 2000), answer(true, 0, 0, 1000))
})

test('a booking comes back only into the window that the key is in', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  const [early, late] = [oracle.reserve('k', 8, 0), oracle.reserve('k', 8, 0)]
  assert.deepEqual(oracle.cancel(early, 8, 0), answer(false, 0, 2000, 3000))
  assert.deepEqual(oracle.cancel(late, 5, 0), answer(false, 0, 2000, 3000))
  assert.deepEqual(oracle.peek('k', 7, 2000), answer(true, 7, 0, 1000))
})

test('a blocked key books nothing', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.block('k', 5000, 0)
  const { allowed, waitMs } = oracle.reserve('k', 1, 0)
  assert.deepEqual([allowed, waitMs], [false, 5000])
  assert.deepEqual(oracle.peek('k', 1, 5000), answer(true, 10, 0, 0))
})

test('an update of the limit keeps the window, one of the window keeps what was spent in the old one', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('now', 6, 5000)
  oracle.take('before', 6, 4999)
  oracle.update({ ...TEN_A_SECOND, limit: 5 }, 5000)
  assert.deepEqual(oracle.peek('now', 1, 5000), answer(false, 0, 1000, 1000, 5))
  assert.deepEqual(oracle.peek('before', 1, 5000), answer(true, 5, 0, 0, 5))
  oracle.update({ ...TEN_A_SECOND, windowMs: 60_000 }, 5500)
  assert.deepEqual(oracle.peek('now', 1, 5500), answer(true, 5, 0, 54_500))
  assert.deepEqual(oracle.peek('before', 1, 5500), answer(true, 10, 0, 0))
})

test('windows may be any that follow each other', () => {
  const startsUs = [0n, 1_000_000n, 1_500_000n, 9_000_000n, 10n ** 30n]
  const oracle = new FixedWindowOracle(TEN_A_SECOND, (us) => {
    const next = startsUs.findIndex((startUs) => startUs > us)
    return { startUs: startsUs[next - 1] ?? 0n, endUs: startsUs[next] ?? 0n }
  })
  assert.deepEqual(oracle.take('k', 10, 1200), answer(true, 0, 0, 300))
  assert.deepEqual(oracle.take('k', 10, 1500), answer(true, 0, 0, 7500))
  assert.equal(oracle.reserve('k', 1, 1500).waitMs, 7500)
})
