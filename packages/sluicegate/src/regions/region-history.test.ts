import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import {
  FAULTY_REGIONS,
  firstRegionExcess,
  HOLDING_REGIONS,
  REGION_FORMS,
  SOUND_REGIONS,
} from 'sluicegate-testkit/regions/region-history.js'

const HISTORIES = shortOrLong(2, 20)
const MOST_FOR_A_FAULT = 1_500

for (const form of REGION_FORMS) {
  test(`I1: regions never admit more of a ${form} than the policy, whatever becomes of messages, stores and clocks`, async (t) => {
    const { admitted, alone, excess } = await firstRegionExcess(seedsFrom(1, HISTORIES), SOUND_REGIONS, [form])
    assert.equal(excess, undefined)
    assert.ok(admitted > 20 * HISTORIES, `${admitted} tokens passed`)
    t.diagnostic(`${admitted} tokens passed, and ${alone} more by shares of regions without the home`)
  })
}

for (const form of REGION_FORMS.slice(0, shortOrLong(2, 4))) {
  test(`I1: nor where reservations of a ${form} are cancelled, soon or long after`, async () => {
    const { excess } = await firstRegionExcess(seedsFrom(1, HISTORIES), HOLDING_REGIONS, [form])
    assert.equal(excess, undefined)
  })
}

for (const rules of FAULTY_REGIONS) {
  for (const form of REGION_FORMS) {
    const first = rules.forms[form]
    if (first === undefined) continue
    test(`the histories of regions find the planted fault in a ${form}: ${rules.name}`, async (t) => {
      const { histories, excess } = await firstRegionExcess(seedsFrom(first, MOST_FOR_A_FAULT), rules, [form])
      assert.notEqual(excess, undefined, `not found in ${histories} histories`)
      t.diagnostic(`found in history ${histories}`)
    })
  }
}
