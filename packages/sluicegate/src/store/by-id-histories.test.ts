import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { byIdMismatch } from 'sluicegate-testkit/holds/by-id-history.js'
import { foundWith } from 'sluicegate-testkit/holds/fleet-history.js'
import { createLimiter } from '../create-limiter.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { memoryStore } from '../store-testing/index.js'
import { casStore } from './index.js'

const HISTORIES = shortOrLong(40, 400)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100

function mismatch(seed: number): Promise<string | undefined> {
  return byIdMismatch(seed, (policy, clock) => {
    const store = casStore(memoryStore({ clock }))
    return createLimiter(policy, { store, clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
  })
}

test(`work by id goes over a store that swaps as the model says, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

const { ended } = StoredHolds.prototype

/** Forgets nothing of records. */
function endedOfSlots(this: StoredHolds, nowUs: number): ReturnType<typeof ended> {
  const records = new Map(this.records)
  const over = ended.call(this, nowUs)
  for (const [id, record] of records) this.records.set(id, record)
  return over
}

const FAULTS: Readonly<Record<string, PropertyDescriptorMap>> = {
  'what is held counts nowhere': { total: { get: () => 0 } },
  'an id is known for ever': { ended: { value: endedOfSlots } },
  'what a step moves stays where it was': { move: { value: () => undefined } },
}

for (const [fault, planted] of Object.entries(FAULTS)) {
  test(`a store where ${fault} would be found by work by id`, async () => {
    assert.notEqual(await foundWith(StoredHolds.prototype, planted, seedsFrom(1, UNTIL_FOUND), mismatch), undefined)
  })
}
