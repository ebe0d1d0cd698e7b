import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answersOf } from './oracle.js'
import { logTickUs, SlidingLogOracle } from './sliding-log-oracle.js'

const THREE_A_SECOND = { algorithm: 'sliding-log', limit: 3, windowMs: 1000 } as const

const answer = answersOf(3)

test('exactly the limit fits in any window', () => {
  const oracle = new SlidingLogOracle(THREE_A_SECOND)
  for (const [i, atMs] of [0, 100, 200].entries()) assert.deepEqual(oracle.take('k', 1, atMs), answer(true, 2 - i, 0, 1000))
  assert.deepEqual(oracle.take('k', 1, 999.999), answer(false, 0, 1, 201))
  assert.deepEqual(oracle.take('k', 1, 1000), answer(true, 0, 0, 1000))
  assert.deepEqual(oracle.take('k', 2, 1100), answer(false, 1, 100, 900))
})

test('times are rounded up to the tick, so that nothing comes back too soon', () => {
  const oracle = new SlidingLogOracle({ ...THREE_A_SECOND, tickUs: 8 })
  oracle.take('k', 3, 0.001)
  assert.deepEqual(oracle.take('k', 1, 1000.008), answer(false, 0, 1, 1))
  assert.deepEqual(oracle.take('k', 1, 1000.009), answer(true, 2, 0, 1001))
})

test('requests within one tick do not close the log for each other', () => {
  const oracle = new SlidingLogOracle({ ...THREE_A_SECOND, tickUs: 8 })
  for (const us of [1, 1, 8]) assert.equal(oracle.take('k', 1, us / 1000).allowed, true)
  assert.equal(oracle.take('ahead', 1, 0.009).allowed, true)
  assert.deepEqual(oracle.take('ahead', 1, 0.008), answer(false, 0, 1, 1001))
})

test('the tick is one microsecond but for long windows and high limits', () => {
  const tickOf = (limit: number, windowMs: number): bigint => logTickUs({ algorithm: 'sliding-log', limit, windowMs })
  const day = 86_400_000
  assert.deepEqual([tickOf(10, 366 * day), tickOf(1000, day), tickOf(500_000, 1_073_741.824)], [1n, 1n, 1n])
  assert.deepEqual([tickOf(500_000, 1_073_741.825), tickOf(500_000, day), tickOf(500_000, 366 * day)], [2n, 128n, 32_768n])
})

test('after a step back the log is closed until its newest entry', () => {
  const oracle = new SlidingLogOracle(THREE_A_SECOND)
  oracle.take('k', 1, 5000)
  assert.deepEqual(oracle.take('k', 1, 4000), answer(false, 0, 1000, 2000))
  assert.deepEqual(oracle.take('k', 3, 4000), answer(false, 0, 2000, 2000))
  assert.deepEqual(oracle.take('k', 2, 5000), answer(true, 0, 0, 1000))
})

test('a refund takes the newest first and leaves what has ended alone', () => {
  const oracle = new SlidingLogOracle(THREE_A_SECOND)
  oracle.take('k', 1, 0)
  oracle.take('k', 2, 500)
  assert.deepEqual(oracle.refund('k', 1, 600), answer(true, 1, 0, 900))
  assert.deepEqual(oracle.refund('k', 1, 600), answer(true, 2, 0, 400))
  assert.deepEqual(oracle.refund('k', 9, 1000), answer(true, 3, 0, 0))
})

test('a penalty is an entry of its own, or with all slots in use part of the newest, which moves', () => {
  const oracle = new SlidingLogOracle(THREE_A_SECOND)
  oracle.take('k', 1, 0)
  oracle.penalize('k', 1, 100)
  assert.deepEqual(oracle.penalize('k', 5, 200), answer(false, 0, 1000, 1000))
  assert.deepEqual(oracle.peek('k', 1, 1000), answer(false, 0, 200, 200))
  oracle.penalize('full', 1_000_000, 0)
  assert.deepEqual(oracle.refund('full', 31, 0), answer(true, 1, 0, 1000))
  for (const atMs of [0, 1, 2]) oracle.take('slots', 1, atMs)
  assert.deepEqual(oracle.penalize('slots', 1, 10), answer(false, 0, 991, 1000))
})

test('a booking is an entry ahead, which closes the log until then', () => {
  const oracle = new SlidingLogOracle(THREE_A_SECOND)
  oracle.take('k', 2, 0)
  oracle.take('k', 1, 500)
  const [first, second] = [oracle.reserve('k', 2, 600), oracle.reserve('k', 1, 600)]
  assert.deepEqual([first.atUs, first.waitMs, second.atUs, second.waitMs], [1_000_000n, 400, 1_500_000n, 900])
  assert.deepEqual(oracle.take('k', 1, 1200), answer(false, 0, 800, 1300))
  assert.deepEqual(oracle.cancel(first, 2, 1200), answer(false, 0, 800, 1300))
  assert.deepEqual(oracle.cancel(second, 1, 1200), answer(false, 0, 300, 800))
  assert.deepEqual(oracle.take('k', 1, 1500), answer(true, 0, 0, 1000))
})

test('a booking ahead that comes back leaves the log closed until then', () => {
  const oracle = new SlidingLogOracle({ ...THREE_A_SECOND, limit: 1 })
  oracle.take('k', 1, 0)
  const booking = oracle.reserve('k', 1, 0)
  assert.deepEqual(oracle.cancel(booking, 1, 0), answer(false, 0, 1000, 1000, 1))
})

test('after an update entries stay, but none that had ended comes back', () => {
  const oracle = new SlidingLogOracle(THREE_A_SECOND)
  oracle.take('k', 1, 0)
  oracle.take('k', 2, 500)
  oracle.update({ ...THREE_A_SECOND, windowMs: 60_000 }, 1200)
  assert.deepEqual(oracle.peek('k', 1, 1200), answer(true, 1, 0, 59_300))
  oracle.update({ ...THREE_A_SECOND, limit: 1, windowMs: 60_000 }, 1200)
  assert.deepEqual(oracle.peek('k', 1, 1200), answer(false, 0, 59_300, 59_300, 1))
})
