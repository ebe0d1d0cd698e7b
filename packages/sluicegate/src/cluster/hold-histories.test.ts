import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { fleetHoldMismatch, foundWith, turnsPassed } from 'sluicegate-testkit/holds/fleet-history.js'
import { createLimiter } from '../create-limiter.js'
import type { ManualClock, Policy } from '../index.js'
import { HeldKey } from '../memory/held-key.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { primary } from './primary.js'
import { type ServedLimiter, serveLimiter } from './serve-limiter.js'

const HISTORIES = shortOrLong(20, 150)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100

/** What is wrong with a random history of workers of a primary. */
function mismatch(seed: number): Promise<string | undefined> {
  return fleetHoldMismatch(seed, (clock: ManualClock) => {
    let served: ServedLimiter | undefined
    return {
      limiter(policy: Policy) {
        const pair = channelPair()
        served ??= serveLimiter(policy, { clock, mode: 'exact' })
        served.serve(pair.worker)
        return createLimiter(policy, { store: primary({ process: pair.parent }), clock, outage: 'closed', timeout: 60_000 })
      },
      settled: turnsPassed,
      async end() {
        served?.close()
      },
    }
  })
}

test(`workers of a primary spend no more than the policy, and what lost ones held is free again, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

const FAULTS: readonly (readonly [fault: string, prototype: object, planted: PropertyDescriptorMap])[] = [
  ['what workers hold counts for them alone', HeldKey.prototype, { move: { value: () => undefined } }],
  ['what is reported is charged nowhere', HeldKey.prototype, { charge: { value: () => undefined } }],
  ['what is held counts nowhere for those who open', StoredHolds.prototype, { total: { get: () => 0 } }],
  ['what was granted to a lost worker is free', StoredHolds.prototype, { ended: { value: endedForNothing } }],
]

const { ended } = StoredHolds.prototype

function endedForNothing(this: StoredHolds, nowUs: number): readonly never[] {
  ended.call(this, nowUs)
  return []
}

for (const [fault, prototype, planted] of FAULTS) {
  test(`a primary where ${fault} would be found`, async () => {
    assert.notEqual(await foundWith(prototype, planted, seedsFrom(1, UNTIL_FOUND), mismatch), undefined)
  })
}
