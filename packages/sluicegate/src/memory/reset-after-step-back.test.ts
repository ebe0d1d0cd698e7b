import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { createLimiter, fixedWindow, gcra, manualClock, type Policy, StoreError, slidingLog, slidingWindow, tokenBucket } from '../index.js'

const SEEDS = shortOrLong(20, 60)
const few = { limit: 3, window: '1s' } as const
const POLICIES: readonly (readonly [string, Policy, number])[] = [
  ['token bucket', tokenBucket(few), 3],
  ['gcra', gcra(few), 3],
  ['fixed window', fixedWindow(few), 3],
  ['sliding window', slidingWindow(few), 3],
  ['sliding window with counts in two words', slidingWindow({ ...few, limit: 70_000 }), 40_000],
  ['sliding log', slidingLog(few), 3],
]

/** Random takes on more keys than the table holds, by a clock that steps to and fro; after each reset the key has to pass its whole limit. */
function wrongResets(policy: Policy, mostCost: number, onFull: 'evict' | 'deny', seed: number): number {
  const random = new Random(seed)
  const clock = manualClock(1_789_000_000_000)
  using limiter = createLimiter(policy, { clock, maxKeys: 16, onFull })
  let wrong = 0
  for (let i = 0; i < 200; i++) {
    const key = `k${random.integer(0, 60)}`
    const step = random.integer(0, 9)
    if (step < 6) limiter.take(key, random.integer(1, mostCost))
    else if (step < 7) clock.advance(random.integer(0, 1500))
    else if (step < 8) clock.advance(-random.integer(0, 4000))
    else if (isReset(() => limiter.reset(key))) {
      const { refusals } = limiter.stats()
      const { allowed } = limiter.take(key, policy.limit)
      // Without room for it in the table a new key is denied, however good.
      if (!allowed && limiter.stats().refusals === refusals) wrong++
    }
  }
  return wrong
}

/** False where the key is unknown, and there is no room to note that it starts again: that is an error. */
function isReset(reset: () => unknown): boolean {
  try {
    reset()
    return true
  } catch (error) {
    assert.ok(error instanceof StoreError && error.code === 'TABLE_FULL')
    return false
  }
}

for (const [name, policy, mostCost] of POLICIES) {
  for (const onFull of ['evict', 'deny'] as const) {
    test(`${name}, ${onFull} when full: a reset opens the key, however far the clock stepped back`, () => {
      for (let seed = 0; seed < SEEDS; seed++) assert.equal(wrongResets(policy, mostCost, onFull, seed), 0, `seed ${seed}`)
    })
  }
}
