import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../../run-length.js'
import { admitted, type Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

const DAY_MS = 86_400_000
const YEAR_MS = 365.25 * DAY_MS

/** Faults in time and arithmetic that other limiters of rates have had. */
export function rateTime(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  for (const stepMs of [0.001, 1, 1000, 3_600_000, DAY_MS, 40 * DAY_MS, 10 * YEAR_MS]) {
    test(`I3 ${name}: a step back of ${stepMs} ms grants nothing and delays no key longer than the step`, () => {
      const { limiter, clock } = fixture(tenASecond)
      limiter.take('spent', 10)
      limiter.take('half', 5)
      clock.advance(-stepMs)
      assert.equal(admitted(limiter, 'spent', 50), 0)
      assert.ok(admitted(limiter, 'half', 50) <= 5)
      assert.ok(limiter.peek('spent').retryAfterMs <= Math.ceil(stepMs) + 100)
      clock.advance(stepMs)
      assert.equal(admitted(limiter, 'spent', 50), 0)
      clock.advance(100)
      assert.equal(admitted(limiter, 'spent', 50), 1)
    })
  }

  test(`I3 ${name}: nothing wraps in 30 years of use`, () => {
    const { limiter, clock } = fixture(tenASecond)
    const untilMs = clock.nowMs() + 30 * YEAR_MS
    for (let days = 0.1; clock.nowMs() < untilMs; days = days > 50 ? 0.1 : days * shortOrLong(3, 1.3)) {
      assert.equal(admitted(limiter, 'k', 15), 10)
      assert.equal(limiter.peek('k').resetAfterMs, 1000)
      clock.advance(days * DAY_MS)
    }
  })

  for (const years of [1, 12.7, 13, 34.8, 35, 60]) {
    test(`${name}: a key idle for ${years} years has its burst and not one more`, () => {
      for (const policy of [tenASecond, policyOf({ limit: 999_983, window: '1s', burst: 100 }), policyOf({ limit: 1, window: '30d' })]) {
        const { limiter, clock } = fixture(policy)
        limiter.take('k', policy.burst)
        clock.advance(years * YEAR_MS)
        assert.equal(admitted(limiter, 'k', policy.burst + 5), policy.burst)
      }
    })
  }

  test(`${name}: polled every microsecond, a bucket still refills`, () => {
    const { limiter, clock } = fixture(policyOf({ limit: 1000, window: '1s', burst: 2 }))
    limiter.take('k', 2)
    let passed = 0
    const startMs = clock.nowMs()
    for (let us = 1; us <= 20_000; us++) {
      clock.set(startMs + us / 1000)
      if (limiter.take('k').allowed) passed++
    }
    assert.equal(passed, 20)
  })

  test(`${name}: 7 per 60 s does not drift in ten years`, () => {
    const { limiter, clock } = fixture(policyOf({ limit: 7, window: '60s' }))
    const startMs = clock.nowMs()
    for (let minute = 0; minute < 5_259_600; minute += 1 + (minute % 1999)) {
      clock.set(startMs + minute * 60_000)
      assert.equal(limiter.take('k', 7).allowed, true)
      assert.deepEqual([limiter.peek('k').retryAfterMs, limiter.peek('k').resetAfterMs], [8572, 60_000])
    }
  })

  test(`${name}: a burst of one spaces requests evenly, also after a long idle time`, () => {
    const { limiter, clock } = fixture(policyOf({ limit: 100, window: '1s', burst: 1 }))
    assert.equal(admitted(limiter, 'k', 1000), 1)
    clock.advance(YEAR_MS)
    assert.equal(admitted(limiter, 'k', 1000), 1)
    clock.advance(9.999)
    assert.equal(admitted(limiter, 'k', 1000), 0)
    clock.advance(0.001)
    assert.equal(admitted(limiter, 'k', 1000), 1)
  })

  test(`${name}: retry-after is never 0 on a denial, at any rate`, () => {
    for (const limit of [1, 999, 1001, 10_000, 1_000_000, 1_000_000_000]) {
      const { limiter } = fixture(policyOf({ limit, window: '1s', burst: 3 }))
      limiter.take('k', 3)
      const { allowed, retryAfterMs } = limiter.take('k')
      assert.equal(allowed, false)
      assert.ok(retryAfterMs >= 1, `${limit} per second: ${retryAfterMs}`)
    }
  })

  test(`${name}: a wait of 900 ms reads as 900, not as 0 s or 1 s`, () => {
    const { limiter } = fixture(policyOf({ limit: 1, window: '900ms' }))
    limiter.take('k')
    assert.equal(limiter.take('k').retryAfterMs, 900)
  })

  test(`${name}: fractions of a token are not lost: 0.35 a poll at 10/s admit 40 in 3 s from a burst of 10`, () => {
    const { limiter, clock } = fixture(tenASecond)
    let passed = admitted(limiter, 'k', 10)
    for (let ms = 0; ms < 3000; ms += 35) {
      clock.advance(Math.min(35, 3000 - ms))
      if (limiter.take('k').allowed) passed++
    }
    assert.equal(passed, 40)
  })

  test(`${name}: a key's first call sets no window of its own: budgets flow in continuously`, () => {
    const { limiter, clock } = fixture(tenASecond)
    clock.advance(777.7)
    limiter.take('k', 10)
    clock.advance(500)
    assert.equal(admitted(limiter, 'k', 20), 5)
  })
}
