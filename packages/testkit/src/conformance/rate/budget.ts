import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Admission } from '../../history/admission.js'
import { firstExcess, shareOfBudget } from '../../history/rate-history.js'
import { Random } from '../../random.js'
import { shortOrLong } from '../../run-length.js'
import { admitted, type Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

const POLICIES = [
  { limit: 10, window: '1s', burst: 10 },
  { limit: 7, window: '1m', burst: 7 },
  { limit: 1000, window: '1s', burst: 5 },
  { limit: 999_983, window: '1s', burst: 5000 },
  { limit: 3, window: '30d', burst: 2 },
] as const
/** Random costs of which the retry-after is tried. */
const RETRIES = shortOrLong(60, 200)

/** The invariants of the budget that one thread can show: I1, I2, I4, I5. */
export function rateBudget(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  for (const options of POLICIES) {
    const policy = policyOf(options)
    const label = `${name}, ${options.limit} per ${options.window}, burst ${options.burst}`
    const spec = { limit: policy.limit, windowMs: policy.windowMs, burst: policy.burst }
    const intervalMs = policy.windowMs / policy.limit

    test(`I1 ${label}: over every interval at most burst + rate * length is admitted`, () => {
      const random = new Random(policy.limit)
      const { limiter, clock } = fixture(policy)
      const admissions: Admission[] = []
      for (let i = 0; i < 3000; i++) {
        clock.advance(
          Math.round(random.pick([0, 0.001, intervalMs / 3, intervalMs, intervalMs * policy.burst * random.fraction()]) * 1000) / 1000,
        )
        const cost = random.chance(0.7) ? 1 : random.integer(1, policy.burst)
        if (limiter.take('k', cost).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      assert.ok(admissions.length > 100)
      assert.equal(firstExcess(spec, admissions), undefined)
    })

    test(`I2 ${label}: a caller that always asks gets at least 99.9 % of the budget, at any call rate`, () => {
      for (const polls of [1, 97, 3, 10].slice(0, shortOrLong(2, 4))) {
        const { limiter, clock } = fixture(policy)
        const everyMs = Math.max(0.001, Math.floor((intervalMs / polls) * 1000) / 1000)
        const startMs = clock.nowMs()
        let passed = admitted(limiter, 'k', policy.burst)
        for (let i = 0; i < 5000; i++) {
          clock.advance(everyMs)
          // Empties the bucket each time: never more than two tokens come between two polls.
          passed += admitted(limiter, 'k', 3)
        }
        const lengthUs = Math.round((clock.nowMs() - startMs) * 1000)
        assert.ok(shareOfBudget(spec, passed, lengthUs) >= 999_000, `${passed} in ${lengthUs} us`)
      }
    })

    test(`I4 ${label}: a denial costs nothing`, () => {
      const { limiter } = fixture(policy)
      limiter.take('k', policy.burst)
      const before = limiter.peek('k')
      assert.equal(admitted(limiter, 'k', 1000), 0)
      assert.equal(admitted(limiter, 'k', 1000, policy.burst + 1), 0)
      assert.deepEqual(limiter.peek('k'), before)
    })

    test(`I5 ${label}: at +retryAfterMs the same request passes, 1 ms before it does not`, () => {
      const random = new Random(policy.burst)
      const { limiter, clock } = fixture(policy)
      limiter.take('k', policy.burst)
      for (let i = 0; i < RETRIES; i++) {
        const cost = random.integer(1, policy.burst)
        const { allowed, retryAfterMs } = limiter.take('k', cost)
        if (allowed) continue
        assert.ok(Number.isInteger(retryAfterMs) && retryAfterMs > 0)
        clock.advance(retryAfterMs - 1)
        assert.equal(limiter.peek('k', cost).allowed, false)
        clock.advance(1)
        assert.equal(limiter.take('k', cost).allowed, true)
      }
    })

    test(`${label}: at +resetAfterMs the key is full, 1 ms before it is not`, () => {
      const { limiter, clock } = fixture(policy)
      const { resetAfterMs } = limiter.take('k', policy.burst)
      clock.advance(resetAfterMs - 1)
      assert.ok(limiter.peek('k').resetAfterMs > 0)
      clock.advance(1)
      assert.deepEqual([limiter.peek('k').resetAfterMs, limiter.peek('k').remaining], [0, policy.burst])
    })
  }
}
