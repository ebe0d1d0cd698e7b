import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOLD_FAULTS, holdMismatch, savedHoldSeeds, seedsFrom, shortOrLong } from 'sluicegate-testkit'

const HISTORIES = shortOrLong(50, 400)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 200

test(`work that opens, adds, closes and lapses on one to three levels goes as the oracle says, in ${HISTORIES} random histories`, () => {
  for (const seed of new Set([...savedHoldSeeds(), ...seedsFrom(1, HISTORIES)])) {
    assert.equal(holdMismatch(seed), undefined, `seed ${seed}`)
  }
})

for (const fault of HOLD_FAULTS) {
  test(`a limiter where ${fault} would be found`, () => {
    const found = [...seedsFrom(1, UNTIL_FOUND)].some((seed) => holdMismatch(seed, fault) !== undefined)
    assert.equal(found, true)
  })
}
