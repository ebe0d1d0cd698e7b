import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { MUTANTS } from './mutants.js'
import { type ProofResults, proofTables, searchesSummed, withTables } from './proof-tables.js'

const PAGE = readFileSync(new URL('../../../../docs/proof.md', import.meta.url), 'utf8')
const RESULTS = JSON.parse(readFileSync(new URL('../../results/schedules.json', import.meta.url), 'utf8')) as ProofResults

test('the page of the proof says what the last whole run found, of every planted fault there is', () => {
  assert.equal(withTables(PAGE, proofTables(RESULTS)), PAGE)
  assert.deepEqual(
    RESULTS.mutants.map(({ name }) => name),
    MUTANTS.map(({ name }) => name),
  )
  assert.doesNotMatch(PAGE, /not caught/)
})

test('a part of the page that nothing fills is an error', () => {
  assert.throws(() => withTables('<!-- proof:other -->\n<!-- /proof -->', proofTables(RESULTS)), /nothing is known of "other"/)
})

test('searches are summed by their bounds and by scenario, from both ends and at random', () => {
  const of = (scenario: string, schedules: number, complete: boolean) => ({ scenario, schedules, complete, preemptions: 3, deaths: 0 })
  const atRandom = { scenario: 'a, at random', schedules: 10, complete: false }
  assert.deepEqual(searchesSummed([of('a', 5, true), of('a, last first', 7, false), atRandom, of('b', 1, true)]), {
    bounds: [
      { preemptions: 3, deaths: 0, searches: 3, complete: 2, schedules: 13 },
      { searches: 1, complete: 0, schedules: 10 },
    ],
    scenarios: [
      { scenario: 'a', schedules: 22 },
      { scenario: 'b', schedules: 1 },
    ],
  })
})
