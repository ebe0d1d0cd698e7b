import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CREW_ALGORITHMS, crowd, everyNth, type PolicySpec, policyOf, shortOrLong } from 'sluicegate-testkit'
import { createLimiter, type Decision, type Key, type Limiter, manualClock } from '../index.js'

const RATES = [
  { limit: 5, windowMs: 1000, burst: 5 },
  { limit: 1, windowMs: 100, burst: 3 },
  { limit: 1, windowMs: 100, burst: 1 },
  { limit: 999_983, windowMs: 3_600_000, burst: 8 },
]
/** The size of the table goes by the seed: that of 4 is the smallest. */
const SEEDS = [4, 3].slice(0, shortOrLong(1, 2))

// In a short run each algorithm has one of both at most, by turns.
for (const [i, { name, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  for (const [j, onFull] of (['evict', 'deny'] as const).entries()) {
    everyNth(i + j, 6)(`I7 ${name}, onFull ${onFull}: in a crowd every answer is exact, or that of a key that might be forgotten`, () => {
      let forgotten = 0
      let turnedAway = 0
      for (const [i, spec] of specsOf(specOf).entries()) {
        const { calls, fewKeys } = sizeOf(spec)
        for (const seed of SEEDS) {
          const clock = manualClock(1_789_000_000_000)
          const limiter = createLimiter(policyOf(spec), { clock, onFull, maxKeys: fewKeys * (1 + (seed % 4)) })
          const result = crowd({ seed: seed + 1000 * i, calls, keys: 120, spec, limiter, keyOf, set: (ms) => clock.set(ms) })
          assert.equal(result.fault, undefined, `seed ${seed}, ${JSON.stringify(spec)}`)
          forgotten += result.forgotten
          turnedAway += result.turnedAway
          if (result.forgotten > 0) assert.ok(limiter.stats().evictions > 0)
        }
      }
      assert.equal(forgotten > 10, onFull === 'evict', `${forgotten} forgotten`)
      assert.ok(onFull === 'evict' || forgotten === 0)
      assert.ok(turnedAway > shortOrLong(2, 10), `${turnedAway} turned away`)
    })
  }
}

for (const { name, specOf, keyOf } of CREW_ALGORITHMS) {
  test(`a limiter that forgets whom it denies would be found out: ${name}`, () => {
    const spec = specOf(5, 1000)
    const clock = manualClock(1_789_000_000_000)
    const limiter = createLimiter(policyOf(spec), { clock, maxKeys: 20 })
    const { calls } = sizeOf(spec)
    const take = (key: Key, cost?: number): Decision => {
      const decision = limiter.take(key, cost)
      if (!decision.allowed && decision.remaining === 0) limiter.reset(key)
      return decision
    }
    const forgetful = new Proxy(limiter, { get: (_, verb) => (verb === 'take' ? take : bound(limiter, verb)) })
    const { fault } = crowd({ seed: 1, calls, keys: 10, spec, limiter: forgetful, keyOf, set: (ms) => clock.set(ms) })
    assert.notEqual(fault, undefined)
  })
}

function bound(limiter: Limiter, verb: string | symbol): unknown {
  const value: unknown = Reflect.get(limiter, verb)
  return typeof value === 'function' ? value.bind(limiter) : value
}

/** Rates also with a burst of their own. */
function specsOf(specOf: (takes: number, windowMs: number) => PolicySpec): readonly PolicySpec[] {
  const spec = specOf(5, 1000)
  return 'burst' in spec ? RATES.map((rate) => ({ ...spec, ...rate })) : [spec, specOf(1, 100), specOf(8, 3_600_000)]
}

interface CrowdSize {
  readonly calls: number
  readonly fewKeys: number
}

/** Each of several policies may have forgotten a key or not: these combinations take time to check. A short run has the fewest that suffice. */
function sizeOf(spec: PolicySpec): CrowdSize {
  return spec.algorithm === 'all-of' ? { calls: 250, fewKeys: 1 } : { calls: shortOrLong(500, 800), fewKeys: 5 }
}
