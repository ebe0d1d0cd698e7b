import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest } from '../run-length.js'
import { MODEL_FAULTS, SMALL_CHECKS } from './model-checks.js'
import { checkModel, readReport } from './spin.js'

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
