import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

/** What the verbs do to tokens that flow in continuously. */
export function rateVerbs(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const tenASecond = policyOf({ limit: 10, window: '1s', name: 'ten' })

  test(`${name}: take answers with a plain decision of all fields`, () => {
    const { limiter } = fixture(tenASecond)
    const answer = {
      allowed: true,
      limit: 10,
      remaining: 7,
      retryAfterMs: 0,
      resetAfterMs: 300,
      policy: 'ten',
      source: fixture.store.source,
    }
    assert.deepEqual(limiter.take('k', 3), answer)
    assert.deepEqual(limiter.take('k', 8), { ...answer, allowed: false, retryAfterMs: 100 })
  })

  test(`${name}: the limit in an answer is the policy's, and remaining may be larger`, () => {
    const { limiter } = fixture(policyOf({ limit: 10, window: '1s', burst: 50 }))
    const { limit, remaining } = limiter.take('k')
    assert.deepEqual({ limit, remaining }, { limit: 10, remaining: 49 })
  })

  test(`${name}: penalize goes into debt, down to ten bursts below empty`, () => {
    const { limiter, clock } = fixture(tenASecond)
    assert.equal(limiter.penalize('k', 15).retryAfterMs, 600)
    for (let i = 0; i < 5; i++) limiter.penalize('k', Number.MAX_SAFE_INTEGER)
    const { remaining, retryAfterMs, resetAfterMs } = limiter.peek('k')
    assert.deepEqual([remaining, retryAfterMs, resetAfterMs], [0, 10_100, 11_000])
    clock.advance(10_099)
    assert.equal(limiter.take('k').allowed, false)
    clock.advance(1)
    assert.equal(limiter.take('k').allowed, true)
  })
}
