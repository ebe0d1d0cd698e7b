import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { fleetHoldMismatch, foundWith, turnsPassed } from 'sluicegate-testkit/holds/fleet-history.js'
import { createLimiter } from '../create-limiter.js'
import type { ManualClock, Policy } from '../index.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { memoryStore } from '../store-testing/index.js'
import { casStore } from './index.js'

const HISTORIES = shortOrLong(20, 150)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100

/** What is wrong with a random history over a store that swaps. */
function mismatch(seed: number, mode: 'exact' | 'leased' = 'exact'): Promise<string | undefined> {
  const open = (clock: ManualClock) => {
    const store = casStore(memoryStore({ clock }))
    return {
      limiter: (policy: Policy) => createLimiter(policy, { store, clock, mode, outage: 'closed', timeout: 60_000 }),
      settled: turnsPassed,
    }
  }
  return fleetHoldMismatch(seed, open, { mode })
}

test(`processes that share a store spend no more than the policy, and what lost ones held is free again, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

test(`what is held and what is leased are within the policy together, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed, 'leased'), undefined)
})

type Move = typeof StoredHolds.prototype.move

/** Nothing too much passes with it, and what is missing may have been leased. */
const TOO_LITTLE = 'a report leaves the grant that it is of'

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
  [TOO_LITTLE]: () => {
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

const MODES = Object.keys(FAULTS).flatMap((fault) => [
  [fault, 'exact'] as const,
  ...(fault === TOO_LITTLE ? [] : [[fault, 'leased'] as const]),
])

for (const [fault, mode] of MODES) {
  test(`a store where ${fault} would be found, ${mode}`, async () => {
    const planted = (FAULTS[fault] as () => PropertyDescriptorMap)()
    const found = await foundWith(StoredHolds.prototype, planted, seedsFrom(1, UNTIL_FOUND), (seed) => mismatch(seed, mode))
    assert.notEqual(found, undefined)
  })
}
