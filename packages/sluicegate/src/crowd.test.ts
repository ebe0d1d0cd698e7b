import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crowd } from 'sluicegate-testkit'
import { createLimiter, gcra, manualClock, tokenBucket } from './index.js'

const SPECS = [
  { limit: 5, windowMs: 1000, burst: 5 },
  { limit: 1, windowMs: 100, burst: 3 },
  { limit: 1, windowMs: 100, burst: 1 },
  { limit: 999_983, windowMs: 3_600_000, burst: 8 },
]

for (const policyOf of [tokenBucket, gcra]) {
  for (const onFull of ['evict', 'deny'] as const) {
    test(`I7 ${policyOf.name}, onFull ${onFull}: in a crowd every answer is exact, or that of a key that might be forgotten`, () => {
      let forgotten = 0
      let turnedAway = 0
      for (const [i, spec] of SPECS.entries()) {
        for (let seed = 1; seed <= 20; seed++) {
          const clock = manualClock(1_789_000_000_000)
          const policy = policyOf({ limit: spec.limit, window: spec.windowMs, burst: spec.burst })
          const limiter = createLimiter(policy, { clock, onFull, maxKeys: 5 + 5 * (seed % 4) })
          const result = crowd({ seed: seed + 1000 * i, calls: 1500, keys: 120, spec, limiter, set: (ms) => clock.set(ms) })
          assert.equal(result.fault, undefined, `seed ${seed}, ${JSON.stringify(spec)}`)
          forgotten += result.forgotten
          turnedAway += result.turnedAway
          if (result.forgotten > 0) assert.ok(limiter.stats().evictions > 0)
        }
      }
      assert.equal(forgotten > 100, onFull === 'evict', `${forgotten} forgotten`)
      assert.ok(onFull === 'evict' || forgotten === 0)
      assert.ok(turnedAway > 100, `${turnedAway} turned away`)
    })
  }
}
