import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALGORITHM_NAMES, seedsOf, shortOrLong } from 'sluicegate-testkit'
import { mismatchOnStore } from 'sluicegate-testkit/stores/compare-on-store.js'
import { createLimiter } from '../create-limiter.js'
import { memoryStore } from '../store-testing/index.js'
import { manualClock } from '../time/clock.js'
import { casStoreOf } from './cas.js'

/** Of each algorithm; some 22 steps each. */
const SEQUENCES = shortOrLong(5, 25)
/** One clock: they do not drift apart. */
const NO_DRIFT = Number.POSITIVE_INFINITY

for (const algorithm of ALGORITHM_NAMES) {
  test(`${algorithm} in a store answers what the oracle says, field by field, over ${SEQUENCES} random sequences, also across updates`, async () => {
    // Those of permits once ended the permit that was given after a reset, and renewed one under the numbers of before.
    for (const seed of seedsOf(algorithm, SEQUENCES)) {
      const mismatch = await mismatchOnStore(seed, algorithm, (policy) => {
        const clock = manualClock(0)
        const store = casStoreOf(memoryStore({ clock }), {}, NO_DRIFT)
        const options = { store, mode: 'exact', outage: 'closed', timeout: 60_000, clock } as const
        return { limiter: createLimiter(policy, options), set: (ms) => clock.set(ms) }
      })
      assert.equal(mismatch, undefined, `seed ${seed}: ${JSON.stringify(mismatch)}`)
    }
  })
}
