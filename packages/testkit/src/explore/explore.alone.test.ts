import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, longTest, shortOrLong } from '../run-length.js'
import { coreSources, substituted } from './core-sources.js'
import { ExploredModules } from './explored-modules.js'
import { hunt } from './hunt.js'
import { MUTANTS } from './mutants.js'
import { inEachEncoding } from './scenario.js'
import { SCENARIOS } from './scenarios.js'
import { checkModel, MODEL_FAULTS, readReport, SMALL_CHECKS } from './spin.js'

// What every run of the tests explores; `npm run prove:schedules` goes further.
const MOST = shortOrLong(20, 300)
const SEARCHES = [
  { preemptions: 2, deaths: 0, most: MOST },
  { preemptions: 1, deaths: 1, most: MOST },
]
/** Beyond those bounds, by chance. */
const WALKS = { walks: shortOrLong(3, 20), seed: 20_240_901 }
/** In a short run every third scenario. */
const STEP = 3
const LEAST_SCHEDULES = shortOrLong(30, 100) * MOST

const modules = await ExploredModules.compile(SCENARIOS)
let schedules = 0

for (const [i, scenario] of SCENARIOS.entries()) {
  everyNth(i, STEP)(`I1, I4, I7, I8 hold in every schedule: ${scenario.name}`, () => {
    for (const asked of inEachEncoding(scenario)) {
      for (const bounds of [...SEARCHES, WALKS]) {
        const found = modules.explore(asked, bounds)
        assert.equal(found.violation, undefined, JSON.stringify(found.violation, undefined, 2))
        schedules += found.schedules
      }
    }
  })
}

test(`at least ${LEAST_SCHEDULES} schedules were run`, (t) => {
  t.diagnostic(`${schedules} schedules`)
  assert.ok(schedules >= LEAST_SCHEDULES, `${schedules}`)
})

const MOST_SCHEDULES = 1_000_000
/** Each compiles its own core: a short run has every sixteenth. */
const EVERY_FIFTH = shortOrLong(16, 1)

for (const mutant of MUTANTS.filter((_, i) => i % EVERY_FIFTH === 0)) {
  test(`the explorer finds the planted fault: ${mutant.name}`, async (t) => {
    const { violation, schedules } = await hunt(mutant, MOST_SCHEDULES)
    assert.notEqual(violation, undefined, `not found in ${schedules} schedules`)
    t.diagnostic(`${schedules} schedules of "${mutant.scenario}": ${violation?.what}`)
  })
}

test('a planted fault that no longer applies is an error', () => {
  assert.throws(() => substituted(coreSources(), [{ file: 'table/cas-loop.ts', from: 'no such passage', to: '' }]), /0 times, not once/)
})

/** Each compiles a checker. A short run has the quickest: a fault that is found. */
const inTurn = (i: number): typeof test => (i === 0 ? test : longTest)

for (const { name, defines } of SMALL_CHECKS) {
  longTest(`the model of the table holds in every state: ${name}`, async (t) => {
    const { states, complete, error } = await checkModel(defines)
    assert.equal(error, undefined)
    assert.ok(complete)
    t.diagnostic(`${states} states`)
  })
}

for (const [i, { fault, defines }] of MODEL_FAULTS.entries()) {
  inTurn(i)(`Spin finds the fault planted in the model: ${fault}`, async (t) => {
    const { states, error } = await checkModel({ ...defines, [`FAULT_${fault}`]: 1 })
    assert.notEqual(error, undefined)
    t.diagnostic(`after ${states} states: ${error}`)
  })
}

test('a report of Spin is read: states, and the assertion that failed', () => {
  const held = 'State-vector 100 byte, depth reached 9, errors: 0\n   42 states, stored\n'
  assert.deepEqual(readReport(held), { states: 42, complete: true, error: undefined })
  const failed = 'pan:1: assertion violated (a==b) (at depth 7)\nSearch not completed\n, errors: 1\n   12 states, stored\n'
  assert.deepEqual(readReport(failed), { states: 12, complete: false, error: 'assertion violated (a==b)' })
  assert.equal(readReport(`${held}error: max search depth too small\n`).complete, false)
  assert.throws(() => readReport('sh: ./pan: not found'), /not a report/)
})
