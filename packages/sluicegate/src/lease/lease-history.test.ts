import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { firstLeaseExcess, LEASED_ENCODINGS } from 'sluicegate-testkit/leases/lease-excess.js'
import { FAULTY, SOUND } from 'sluicegate-testkit/leases/lease-rules.js'

// A part of `npm run prove:leases`.

const HISTORIES = shortOrLong(100, 5_000)
const MOST_FOR_A_FAULT = 20_000
/** They once found something. */
const SAVED_SEEDS: readonly number[] = []

for (const encoding of LEASED_ENCODINGS) {
  test(`I1: leases of a ${encoding} never let more pass than the policy, whatever becomes of processes, messages and clocks`, (t) => {
    const { admitted, charged, excess } = firstLeaseExcess([...SAVED_SEEDS, ...seedsFrom(1, HISTORIES)], SOUND, [encoding])
    assert.equal(excess, undefined)
    assert.ok(admitted > HISTORIES && admitted < charged, `${admitted} of ${charged} tokens were spent`)
    t.diagnostic(`${admitted} of ${charged} tokens spent`)
  })
}

for (const rules of FAULTY) {
  for (const encoding of rules.encodings) {
    test(`the histories of a ${encoding} find the planted fault: ${rules.name}`, (t) => {
      const { histories, excess } = firstLeaseExcess(seedsFrom(1, MOST_FOR_A_FAULT), rules, [encoding])
      assert.notEqual(excess, undefined, `not found in ${histories} histories`)
      t.diagnostic(`found in history ${histories}`)
    })
  }
}
