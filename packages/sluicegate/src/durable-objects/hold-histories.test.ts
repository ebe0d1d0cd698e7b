import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { fleetHoldMismatch, foundWith, turnsPassed } from 'sluicegate-testkit/holds/fleet-history.js'
import { KeptObjects } from 'sluicegate-testkit/workers/kept-storage.js'
import { createLimiter } from '../create-limiter.js'
import type { ManualClock, Policy } from '../index.js'
import { HeldKey } from '../memory/held-key.js'
import { OwnedHolds } from '../owner/owned-holds.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { durableObjects } from './durable-objects.js'
import { limiterObject } from './limiter-object.js'

const HISTORIES = shortOrLong(20, 150)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100
/** Objects leave the memory with each of so many steps. */
const EVICTED_EACH = 7

/** What is wrong with a random history of Workers that share objects, which leave the memory now and then. */
function mismatch(seed: number): Promise<string | undefined> {
  const open = (clock: ManualClock) => {
    let objects: KeptObjects | undefined
    let steps = 0
    return {
      limiter(policy: Policy) {
        objects ??= new KeptObjects(limiterObject([policy], { clock, mode: 'exact', maxKeys: 1 }))
        const store = durableObjects(objects, { waitUntil: () => undefined })
        return createLimiter(policy, { store, clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
      },
      async settled() {
        await turnsPassed()
        if (++steps % EVICTED_EACH === 0) objects?.evict()
      },
    }
  }
  return fleetHoldMismatch(seed, open, { mostLevels: 1, updates: false })
}

test(`Workers spend no more than the policy, and what lost ones held is free again, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

const { ended } = StoredHolds.prototype

function endedForNothing(this: StoredHolds, nowUs: number): readonly never[] {
  ended.call(this, nowUs)
  return []
}

const FAULTS: readonly (readonly [fault: string, prototype: object, planted: PropertyDescriptorMap])[] = [
  ['what Workers hold counts for them alone', HeldKey.prototype, { move: { value: () => undefined } }],
  ['what is held counts nowhere for those who open', StoredHolds.prototype, { total: { get: () => 0 } }],
  ['what was granted to a lost Worker is free', StoredHolds.prototype, { ended: { value: endedForNothing } }],
  ['what is held ends with the memory of its object', OwnedHolds.prototype, { load: { value: () => undefined } }],
]

for (const [fault, prototype, planted] of FAULTS) {
  test(`an object where ${fault} would be found`, async () => {
    assert.notEqual(await foundWith(prototype, planted, seedsFrom(1, UNTIL_FOUND), mismatch), undefined)
  })
}
