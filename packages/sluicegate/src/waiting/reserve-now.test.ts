import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow, manualClock, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'

for (const policy of [fixedWindow, slidingWindow, slidingLog, tokenBucket].map((make) => make({ limit: 100, window: '1h' }))) {
  test(`${policy.algorithm}: what may not be spent within maxWait is not booked, and leaves the key as it was`, async () => {
    const clock = manualClock(1_760_000_000_000)
    const overStore = createLimiter(policy, { store: casStore(memoryStore({ clock })), clock })
    for (const limiter of [createLimiter(policy, { clock }), createLimiter(policy, { clock, shadow: false, overrides: true }), overStore]) {
      await limiter.take('k', 90)
      const refused = await limiter.reserve('k', 11, { maxWait: 0 })
      assert.equal(refused.allowed, false)
      assert.ok(refused.waitMs > 0 && refused.waitMs <= 7_200_000)
      await refused.cancel()
      assert.equal((await limiter.reserve('k', 101, { maxWait: 0 })).waitMs, Number.POSITIVE_INFINITY)
      assert.equal((await limiter.take('k', 10)).allowed, true)
      await assert.rejects(async () => limiter.reserve('k', 1, { maxWait: -1 }), { code: 'DURATION_INVALID' })
      limiter.close()
    }
  })
}
