import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concurrency, createLimiter, fixedWindow, type Limiter, manualClock, type Policy, slidingLog, slidingWindow } from '../index.js'

const DAY_MS = 86_400_000
const START_MS = 1_789_000_000_000 - (1_789_000_000_000 % 60_000)
const POLICIES: readonly Policy[] = [
  fixedWindow({ limit: 3, window: '1m' }),
  fixedWindow({ limit: 3, window: 'day', name: 'a day' }),
  slidingWindow({ limit: 3, window: '1m' }),
  slidingWindow({ limit: 3, window: 200, name: 'short' }),
  slidingLog({ limit: 3, window: '1m' }),
]
const WAYS: Readonly<Record<string, (limiter: Limiter) => unknown>> = {
  refund: (limiter) => [limiter.take('k'), limiter.refund('k', 1)],
  cancel: (limiter) => limiter.reserve('k', 1).cancel(),
  settle: (limiter) => limiter.reserve('k', 1).settle(0),
  'penalize and refund': (limiter) => [limiter.penalize('k', 2), limiter.refund('k', 2)],
}

for (const policy of POLICIES) {
  for (const [way, giveBack] of Object.entries(WAYS)) {
    test(`I3 ${policy.name}, ${way}: what is given back later gives a clock that is set back nothing twice`, () => {
      const clock = manualClock(START_MS)
      const limiter = createLimiter(policy, { clock })
      const { windowMs } = policy
      clock.set(START_MS + windowMs * 3 - (START_MS % windowMs))
      assert.equal(limiter.take('k', 3).allowed, true)
      clock.advance(windowMs * 1.5)
      giveBack(limiter)
      clock.advance(-windowMs)
      assert.equal(limiter.take('k').allowed, false)
      clock.advance(windowMs * 3)
      assert.equal(limiter.take('k', 3).allowed, true)
    })
  }
}

test('a slot that lay idle for years holds the next permit at once', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '366d' }), { clock })
  const kept = limiter.take('k')
  limiter.take('k')
  for (let i = 0; i < 5; i++) {
    clock.advance(200 * DAY_MS)
    assert.equal(kept.heartbeat(), true)
  }
  assert.equal(limiter.take('k').allowed, true)
  assert.equal(limiter.take('k').allowed, false)
})
