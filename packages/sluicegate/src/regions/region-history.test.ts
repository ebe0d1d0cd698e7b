import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { FAULTY_REGIONS, firstRegionExcess, REGION_FORMS, SOUND_REGIONS } from 'sluicegate-testkit/regions/region-history.js'

const HISTORIES = shortOrLong(3, 40)
const MOST_FOR_A_FAULT = 1_500
/** Where a fault is found late, a search begins shortly before: a history takes 80 ms. */
const SHORTLY_BEFORE: Readonly<Record<string, number>> = {
  'fixed-window: tokens of a region end counted from their arrival': 382,
  'fixed-window: tokens of a region have no end': 46,
  'rate: tokens of a region have no end': 5,
  'sliding-log: tokens of a region have no end': 26,
  'rate: a clock that ran back lets tokens live again': 89,
  'fixed-window: tokens that went back to the home are spent as well': 4,
  'sliding-window: tokens that went back to the home are spent as well': 4,
  'rate: the home counts with shorter leases than the regions': 28,
}
/** They once found something. */
const SAVED_SEEDS: readonly number[] = []

for (const form of REGION_FORMS) {
  test(`I1: regions never admit more of a ${form} than the policy, whatever becomes of messages, stores and clocks`, async (t) => {
    const { admitted, alone, excess } = await firstRegionExcess([...SAVED_SEEDS, ...seedsFrom(1, HISTORIES)], SOUND_REGIONS, [form])
    assert.equal(excess, undefined)
    assert.ok(admitted > 20 * HISTORIES, `${admitted} tokens passed`)
    t.diagnostic(`${admitted} tokens passed, and ${alone} more by shares of regions without the home`)
  })
}

for (const rules of FAULTY_REGIONS) {
  for (const form of rules.forms) {
    test(`the histories of regions find the planted fault in a ${form}: ${rules.name}`, async (t) => {
      const first = SHORTLY_BEFORE[`${form}: ${rules.name}`] ?? 1
      const { histories, excess } = await firstRegionExcess(seedsFrom(first, MOST_FOR_A_FAULT), rules, [form])
      assert.notEqual(excess, undefined, `not found in ${histories} histories`)
      t.diagnostic(`found in history ${histories}`)
    })
  }
}
