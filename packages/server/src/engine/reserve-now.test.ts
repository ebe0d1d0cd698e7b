import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attachLimiter, createLimiter, fixedWindow, manualClock, slidingLog, slidingWindow } from 'sluicegate'
import { reserveNowOf } from './reserve-now.js'
import type { StoredReservation } from './stored-limiter.js'

const LIMITS = { limit: 3, window: '1h' } as const

for (const policy of [fixedWindow(LIMITS), slidingWindow(LIMITS), slidingLog(LIMITS)]) {
  test(`${policy.algorithm}: of tokens that another thread took after the look nothing is booked ahead, and what comes back may be taken`, () => {
    const clock = manualClock(0)
    const limiter = createLimiter(policy, { clock })
    const reserve = reserveNowOf(limiter)
    const other = attachLimiter(limiter.handle(), { clock })
    assert.ok(limiter.peek('a', 1).allowed)
    const taken = Array.from({ length: 3 }, () => other.reserve('a', 1))
    const made = reserve('a', 1) as StoredReservation
    assert.deepEqual([made.allowed, made.decision.allowed], [false, false])
    made.cancel()
    taken.at(-1)?.cancel()
    assert.equal((reserve('a', 1) as StoredReservation).waitMs, 0)
    assert.equal(limiter.take('a').allowed, false)
  })
}
