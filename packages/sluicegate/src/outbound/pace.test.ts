import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RateLimitReading, readRateLimit } from '../headers/read-rate-limit.js'
import { AnnouncedBudget } from './announced-budget.js'
import { LearnedRate } from './learned-rate.js'
import { Pace, type Sent } from './pace.js'

const SETTINGS = {
  backoffMs: 1_000,
  maxBackoffMs: 60_000,
  jitter: 0,
  longestPauseMs: 86_400_000,
  random: () => 0,
}

/** A rate that was found to be 10 a second by a first refusal. */
function found(): LearnedRate {
  const rate = new LearnedRate(10_000)
  rate.sent(0)
  for (let i = 1; i <= 100; i++) rate.accept(i * 100)
  rate.refuse(10_000, 10_000)
  return rate
}

test('a rate falls by a part, is what it was after its time to recover, and then rises ever faster', () => {
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

test('a rate never falls so low that a rise could not be detected', () => {
  const rate = new LearnedRate(15_000)
  for (let at = 0; at < 1e9; at += 1e6) {
    rate.sent(at)
    rate.accept(at)
    rate.refuse(at, at + 1)
  }
  assert.ok(rate.perMs(1e9) >= 0.8 / 60_000)
})

test('idle time does not count for a rate', () => {
  const busy = new LearnedRate(10_000)
  busy.sent(0)
  for (let i = 1; i <= 100; i++) busy.accept(i * 100)
  busy.skip(3_600_000)
  busy.refuse(3_610_000, 3_610_000)
  assert.equal(Math.round(busy.perMs(3_620_000) * 1000), 10)
})

test('half of an announced budget may be sent at once, the rest evenly until the reset', () => {
  const budget = new AnnouncedBudget(0.5, Number.POSITIVE_INFINITY)
  budget.read({ limit: 100, remaining: 90, resetAfterMs: 60_000 }, 0, 0)
  for (let i = 0; i < 40; i++) {
    assert.equal(budget.intervalMs(0, 0), 0)
    budget.sent()
  }
  assert.ok(budget.intervalMs(0, 0) > 0)
  budget.read({ limit: 100, remaining: 50, resetAfterMs: 50_000 }, 0, 0)
  assert.equal(budget.intervalMs(0, 0), 1_000)
  budget.read({ limit: 100, remaining: 50, resetAfterMs: 50_000 }, 25, 0)
  assert.equal(budget.intervalMs(25, 0), 2_000, 'those under way may not be counted yet')
  assert.equal(budget.intervalMs(0, 0), 1_000, 'until they are over')
})

test('of several announced policies the slowest decides; of other resources only an exhausted one', () => {
  const budget = new AnnouncedBudget(0, Number.POSITIVE_INFINITY)
  const policies = [
    { name: 'burst', limit: 10, windowMs: 1_000, remaining: 9, resetAfterMs: 1_000 },
    { name: 'daily', limit: 1_000, windowMs: 86_400_000, remaining: 100, resetAfterMs: 1_001_000 },
    { name: 'tokens', limit: 1_000, remaining: 1, resetAfterMs: 9_000_000 },
  ]
  budget.read({ policies }, 0, 0)
  assert.equal(budget.intervalMs(0, 0), 86_400)
  budget.read({ policies: policies.map((policy) => ({ ...policy, remaining: policy.name === 'tokens' ? 0 : policy.remaining })) }, 0, 0)
  assert.equal(budget.emptyUntilMs, 9_000_000)
})

test('an announcement in fields of its own counts beside the policies', () => {
  const budget = new AnnouncedBudget(0, Number.POSITIVE_INFINITY)
  const headers = {
    'x-ratelimit-remaining': '5',
    'x-ratelimit-reset': '60',
    'ratelimit-policy': '"a";q=60;w=60',
    ratelimit: '"a";r=50;t=50',
  }
  budget.read(readRateLimit(headers), 0, 0)
  assert.equal(budget.remaining, 5)
  budget.read(readRateLimit({ ...headers, 'x-ratelimit-remaining': '0' }), 0, 0)
  assert.equal(budget.emptyUntilMs, 60_000)
  budget.read(readRateLimit({ 'x-ratelimit-remaining': '7', 'x-ratelimit-reset': '60', 'x-ratelimit-remaining-tokens': '5' }), 0, 0)
  assert.equal(budget.remaining, 7)
  budget.read(readRateLimit({ ratelimit: '"bytes";r=5;t=60', 'ratelimit-policy': '"bytes";q=9;w=60;qu="content-bytes"' }), 0, 60_000)
  assert.equal(budget.intervalMs(0, 60_000), 0, 'bytes are no requests')
})

test('meaningless numbers delay no request', () => {
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
    pace.answered({ status: 200, reading, sent: pace.sent(0), nowMs: 10 })
    assert.ok(pace.readyMs(10) <= 10, JSON.stringify(reading))
  }
})

test('a host that has not answered yet gets ten requests at first, and one more with each answer', () => {
  const pace = new Pace(SETTINGS)
  assert.equal(pace.room(0), 10)
  const sent = Array.from({ length: 10 }, () => {
    assert.ok(pace.readyMs(0) <= 0)
    return pace.sent(0)
  })
  assert.equal(pace.readyMs(0), 1_000)
  pace.answered({ status: 200, reading: {}, sent: sent[0] as Sent, nowMs: 20 })
  assert.ok(pace.readyMs(20) <= 20)
})

test('after a pause one request goes, and the others once it was answered', () => {
  const pace = new Pace(SETTINGS)
  pace.answered({ status: 503, reading: { retryAfterMs: 5_000 }, sent: pace.sent(0), nowMs: 0 })
  assert.equal(pace.readyMs(0), 5_000)
  const probe = pace.sent(5_000)
  assert.equal(pace.readyMs(9_999), Number.POSITIVE_INFINITY)
  pace.answered({ status: 200, reading: {}, sent: probe, nowMs: 10_000 })
  assert.ok(pace.readyMs(10_000) <= 10_000)
})

test('what was under way before a pause does not keep it from ending, and one that fails after it is followed by another', () => {
  const pace = new Pace(SETTINGS)
  const poll = pace.sent(0)
  pace.answered({ status: 429, reading: { retryAfterMs: 1_000 }, sent: pace.sent(0), nowMs: 10 })
  assert.equal(pace.readyMs(1_010), 1_010)
  const probe = pace.sent(1_010)
  assert.equal(pace.readyMs(1_010), Number.POSITIVE_INFINITY)
  pace.failed(probe)
  assert.equal(pace.readyMs(1_020), 1_020)
  pace.answered({ status: 200, reading: {}, sent: pace.sent(1_020), nowMs: 1_030 })
  assert.equal(pace.readyMs(1_030), 1_030)
  assert.equal(pace.inFlight, 1)
  pace.answered({ status: 200, reading: {}, sent: poll, nowMs: 600_000 })
  assert.equal(pace.inFlight, 0)
})

test('what those under way may have used up is waited for, and was not used when they fail', () => {
  const pace = new Pace(SETTINGS)
  const under = [pace.sent(0), pace.sent(0), pace.sent(0), pace.sent(0)]
  const reading = { limit: 10, remaining: 3, resetAfterMs: 3_600_000 }
  pace.answered({ status: 200, reading, sent: under[3] as Sent, nowMs: 100 })
  assert.equal(pace.readyMs(100), 3_600_100)
  assert.ok(pace.blockedUntilMs < 100, 'no announcement says that nothing is left')
  for (const sent of under.slice(0, 3)) pace.failed(sent)
  assert.equal(pace.readyMs(200), 1_200_000 - 25)
})

test('an announced budget ends at its reset: then requests are sent as before, after a response without one', () => {
  const pace = new Pace(SETTINGS)
  pace.answered({ status: 429, reading: { remaining: 0, resetAfterMs: 60_000 }, sent: pace.sent(0), nowMs: 0 })
  assert.deepEqual([pace.readyMs(0), pace.blockedUntilMs], [60_000, 60_000])
  pace.answered({ status: 200, reading: {}, sent: pace.sent(60_000), nowMs: 60_010 })
  for (let i = 0; i < 5; i++) {
    assert.ok(pace.readyMs(60_010) <= 60_010)
    pace.sent(60_010)
  }
  const spread = new AnnouncedBudget(0.5, Number.POSITIVE_INFINITY)
  spread.read({ remaining: 5, limit: 1_000, resetAfterMs: 600_000 }, 0, 0)
  assert.equal(spread.readyMs(0, 0, 0), 120_000)
  assert.equal(spread.readyMs(590_000, 0, 590_000), 600_000, 'no longer than it holds')
  assert.equal(spread.intervalMs(0, 600_000), 600)
  spread.read({}, 0, 600_000)
  assert.equal(spread.intervalMs(0, 600_000), 0)
  const windowed = new AnnouncedBudget(0.5, Number.POSITIVE_INFINITY)
  windowed.read({ policies: [{ limit: 100, windowMs: 10_000, remaining: 0, resetAfterMs: 5_000 }] }, 0, 0)
  windowed.read({}, 0, 5_000)
  assert.equal(windowed.intervalMs(0, 5_000), 100, 'a window from a header is kept')
})

test('a turn that was not used is as if it had not been', () => {
  // One more may go at once, or none.
  for (const remaining of [6, 5]) {
    const pace = new Pace(SETTINGS)
    pace.answered({ status: 200, reading: { limit: 10, remaining, resetAfterMs: 60_000 }, sent: pace.sent(0), nowMs: 0 })
    const before = pace.readyMs(0)
    for (let i = 0; i < 3; i++) {
      const sent = pace.sent(0)
      pace.unsent(sent)
      pace.failed(sent)
    }
    assert.deepEqual([pace.readyMs(0), pace.inFlight], [before, 0])
  }
})
