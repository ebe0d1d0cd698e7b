import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coreSources, substituted } from './core-sources.js'
import { ExploredModules } from './explored-modules.js'
import { MUTANTS } from './mutants.js'
import { scenarioNamed } from './scenarios.js'

const MOST_SCHEDULES = 1_000_000

for (const { name, scenario, preemptions, deaths, substitutions } of MUTANTS) {
  test(`the explorer finds the planted fault: ${name}`, async (t) => {
    const question = scenarioNamed(scenario)
    const planted = await ExploredModules.compile([question], substitutions)
    const { violation, schedules } = planted.explore(question, { preemptions, deaths, most: MOST_SCHEDULES })
    assert.notEqual(violation, undefined, `not found in ${schedules} schedules`)
    t.diagnostic(`${schedules} schedules of "${scenario}": ${violation?.what}`)
  })
}

test('a planted fault that no longer applies is an error', () => {
  assert.throws(() => substituted(coreSources(), [{ file: 'cas.ts', from: 'no such passage', to: '' }]), /0 times, not once/)
})
