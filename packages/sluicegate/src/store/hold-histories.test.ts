import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { fleetHoldMismatch, turnsPassed } from 'sluicegate-testkit/holds/fleet-history.js'
import { createLimiter } from '../create-limiter.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { memoryStore } from '../store-testing/index.js'
import { casStore } from './index.js'

const HISTORIES = shortOrLong(20, 150)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100

/** What is wrong with a random history over a store that swaps. */
function mismatch(seed: number): Promise<string | undefined> {
  return fleetHoldMismatch(seed, (clock) => {
    const store = memoryStore({ clock })
    return {
      limiter: (policy) => createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 60_000 }),
      settled: turnsPassed,
    }
  })
}

test(`processes that share a store spend no more than the policy, and what lost ones held is free again, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

type Move = typeof StoredHolds.prototype.move

const FAULTS: Readonly<Record<string, () => PropertyDescriptorMap>> = {
  'what is held counts nowhere': () => ({ total: { get: () => 0 } }),
  'what was granted to a lost process is free': () => {
    const { ended } = StoredHolds.prototype
    return {
      ended: {
        value(this: StoredHolds, nowUs: number) {
          ended.call(this, nowUs)
          return []
        },
      },
    }
  },
  'a report leaves the grant that it is of': () => {
    const move: Move = StoredHolds.prototype.move
    return {
      move: {
        value(this: StoredHolds, us: number, held: number, granted: number) {
          move.call(this, us, held, Math.max(0, granted))
        },
      },
    }
  },
}

for (const [fault, descriptors] of Object.entries(FAULTS)) {
  test(`a store where ${fault} would be found`, async () => {
    const before = Object.getOwnPropertyDescriptors(StoredHolds.prototype)
    const made = descriptors()
    for (const [name, descriptor] of Object.entries(made))
      Object.defineProperty(StoredHolds.prototype, name, { ...descriptor, configurable: true })
    let found: string | undefined
    try {
      for (const seed of seedsFrom(1, UNTIL_FOUND)) {
        found = await mismatch(seed)
        if (found !== undefined) break
      }
    } finally {
      Object.defineProperties(StoredHolds.prototype, before)
    }
    assert.notEqual(found, undefined)
  })
}
