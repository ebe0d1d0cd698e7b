import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { firstLeaseExcess, LEASED_ENCODINGS } from 'sluicegate-testkit/leases/lease-history.js'
import { FAULTY, SOUND } from 'sluicegate-testkit/leases/lease-rules.js'

// A part of `npm run prove:leases`.

const HISTORIES = shortOrLong(40, 250)
const MOST_FOR_A_FAULT = 20_000
/** Where a fault is found late, the search begins shortly before. */
const SHORTLY_BEFORE: Readonly<Record<string, number>> = {
  'sliding-window: a record without room drops what others lend ahead': 3_580,
  'fixed-window: clocks are taken to be equally fast': 1_545,
  'sliding-window: clocks are taken to be equally fast': 2_185,
  'rate: a third version begins as the one written last, and not as the largest': 1_105,
  'fixed-window: a third version begins as the one written last, and not as the largest': 395,
  'sliding-window: a third version begins as the one written last, and not as the largest': 80,
  'rate: beginnings count from the sending': 185,
  'sliding-log: clocks are taken to be equally fast': 128,
  'fixed-window: what was spent of a grant that ended while it was reported is forgotten': 5_160,
  'sliding-log: what was spent of a grant that ended while it was reported is forgotten': 5_160,
  'rate: what a lost report said is spent again': 2_770,
  'fixed-window: what a lost report said is spent again': 1_290,
  'sliding-window: what a lost report said is spent again': 2_860,
  'sliding-log: what a lost report said is spent again': 1_290,
  'rate: a lease leaves what flows back in half of it': 50,
}

for (const encoding of LEASED_ENCODINGS) {
  test(`I1: leases of a ${encoding} never let more pass than the policy, whatever becomes of processes, messages and clocks`, (t) => {
    const { admitted, charged, excess } = firstLeaseExcess(seedsFrom(1, HISTORIES), SOUND, [encoding])
    assert.equal(excess, undefined)
    assert.ok(admitted > HISTORIES && admitted < charged, `${admitted} of ${charged} tokens were spent`)
    t.diagnostic(`${admitted} of ${charged} tokens spent`)
  })
}

test('a history is the same each time', () => {
  const run = () => firstLeaseExcess(seedsFrom(1, 20), SOUND, LEASED_ENCODINGS)
  assert.deepEqual(run(), run())
})

for (const rules of FAULTY) {
  for (const encoding of rules.encodings) {
    test(`the histories of a ${encoding} find the planted fault: ${rules.name}`, (t) => {
      const first = SHORTLY_BEFORE[`${encoding}: ${rules.name}`] ?? 1
      const { histories, excess } = firstLeaseExcess(seedsFrom(first, MOST_FOR_A_FAULT), rules, [encoding])
      assert.notEqual(excess, undefined, `not found in ${histories} histories`)
      t.diagnostic(`found in history ${histories}`)
    })
  }
}
