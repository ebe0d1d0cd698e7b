import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../run-length.js'
import { coreSources, substituted } from './core-sources.js'
import { hunt } from './hunt.js'
import { MUTANTS } from './mutants.js'

const MOST_SCHEDULES = 1_000_000
/** Each compiles its own core: a short run has every sixteenth. */
const STEP = shortOrLong(16, 1)

for (const mutant of MUTANTS.filter((_, i) => i % STEP === 0)) {
  test(`the explorer finds the planted fault: ${mutant.name}`, async (t) => {
    const { violation, schedules } = await hunt(mutant, MOST_SCHEDULES)
    assert.notEqual(violation, undefined, `not found in ${schedules} schedules`)
    t.diagnostic(`${schedules} schedules of "${mutant.scenario}": ${violation?.what}`)
  })
}

test('a planted fault that no longer applies is an error', () => {
  assert.throws(() => substituted(coreSources(), [{ file: 'table/cas-loop.ts', from: 'no such passage', to: '' }]), /0 times, not once/)
})
