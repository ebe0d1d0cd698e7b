import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RateLimitReading } from '../headers/rate-limit-reading.js'
import { LearnedRate } from './learned-rate.js'
import { Pace } from './pace.js'
import { ToldBudget } from './told-budget.js'

const SETTINGS = { backoffMs: 1_000, maxBackoffMs: 60_000, jitter: 0, recoverMs: 10_000, freeShare: 0.5, random: () => 0 }

/** A rate that was found to be 10 a second by a first refusal. */
function found(): LearnedRate {
  const rate = new LearnedRate(10_000)
  rate.sent(0)
  for (let i = 1; i <= 100; i++) rate.accept(i * 100)
  rate.refuse(10_000, 10_000)
  return rate
}

test('a rate falls by a part, is what it was after recoverMs, and then rises ever faster', () => {
  const rate = found()
  const perSecond = [10_000, 15_000, 20_000, 25_000, 30_000, 40_000].map((atMs) => Math.round(rate.perMs(atMs) * 100_000) / 100)
  assert.deepEqual(perSecond, [8.5, 9.81, 10, 10.19, 11.5, 22])
})

test('what was sent before a rate was lowered lowers it no more', () => {
  const rate = found()
  assert.equal(rate.refuse(9_999, 10_050), 'known')
  assert.equal(rate.refuse(10_060, 10_070), 'stuck')
  assert.ok(Math.abs(rate.perMs(10_070) * 1000 - 8.5) < 0.01)
})

test('a rate never sinks so low that nobody would see it rise', () => {
  const rate = new LearnedRate(15_000)
  for (let at = 0; at < 1e9; at += 1e6) {
    rate.sent(at)
    rate.accept(at)
    rate.refuse(at, at + 1)
  }
  assert.ok(rate.perMs(1e9) >= 0.8 / 60_000)
})

test('time in which nobody asked is no measure of a rate', () => {
  const busy = new LearnedRate(10_000)
  busy.sent(0)
  for (let i = 1; i <= 100; i++) busy.accept(i * 100)
  busy.skip(3_600_000)
  busy.refuse(3_610_000, 3_610_000)
  assert.equal(Math.round(busy.perMs(3_620_000) * 1000), 10)
})

test('half of a told budget may go at once, the rest evenly until the reset', () => {
  const budget = new ToldBudget(0.5)
  budget.hear({ limit: 100, remaining: 90, resetAfterMs: 60_000 }, 0, 0)
  for (let i = 0; i < 40; i++) {
    assert.equal(budget.intervalMs, 0)
    budget.sent()
  }
  assert.ok(budget.intervalMs > 0)
  budget.hear({ limit: 100, remaining: 50, resetAfterMs: 50_000 }, 0, 0)
  assert.equal(budget.intervalMs, 1_000)
  budget.hear({ limit: 100, remaining: 50, resetAfterMs: 50_000 }, 25, 0)
  assert.equal(budget.intervalMs, 2_000, 'those under way may not be counted yet')
})

test('of several told policies the slowest decides; of other resources only one that is used up', () => {
  const budget = new ToldBudget(0)
  const policies = [
    { name: 'burst', limit: 10, windowMs: 1_000, remaining: 9, resetAfterMs: 1_000 },
    { name: 'daily', limit: 1_000, windowMs: 86_400_000, remaining: 100, resetAfterMs: 1_001_000 },
    { name: 'tokens', limit: 1_000, remaining: 1, resetAfterMs: 9_000_000 },
  ]
  budget.hear({ policies }, 0, 0)
  assert.equal(budget.intervalMs, 86_400)
  budget.hear({ policies: policies.map((policy) => ({ ...policy, remaining: policy.name === 'tokens' ? 0 : policy.remaining })) }, 0, 0)
  assert.equal(budget.untilMs, 9_000_000)
})

test('numbers that say nothing, or make no sense, stop nobody', () => {
  const readings: RateLimitReading[] = [
    {},
    { limit: 0 },
    { remaining: 5 },
    { resetAfterMs: 9_000 },
    { policies: [] },
    { policies: [{ limit: 5 }] },
  ]
  for (const reading of readings) {
    const pace = new Pace(SETTINGS)
    pace.sent(0)
    pace.answered({ status: 200, reading, sentMs: 0, nowMs: 10 })
    assert.ok(pace.readyMs(10) <= 10, JSON.stringify(reading))
  }
})

test('a host that has not answered yet gets ten requests at first, and one more with each answer', () => {
  const pace = new Pace(SETTINGS)
  for (let i = 0; i < 10; i++) {
    assert.ok(pace.readyMs(0) <= 0)
    pace.sent(0)
  }
  assert.equal(pace.readyMs(0), 1_000)
  pace.answered({ status: 200, reading: {}, sentMs: 0, nowMs: 20 })
  assert.ok(pace.readyMs(20) <= 20)
})

test('after a pause one request goes, and the others once it was answered', () => {
  const pace = new Pace(SETTINGS)
  pace.sent(0)
  pace.answered({ status: 503, reading: { retryAfterMs: 5_000 }, sentMs: 0, nowMs: 0 })
  assert.equal(pace.readyMs(0), 5_000)
  pace.sent(5_000)
  assert.equal(pace.readyMs(9_999), Number.POSITIVE_INFINITY)
  pace.answered({ status: 200, reading: {}, sentMs: 5_000, nowMs: 10_000 })
  assert.ok(pace.readyMs(10_000) <= 10_000)
})
