import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { MUTANTS } from './mutants.js'
import { type ProofResults, proofTables, withTables } from './proof-tables.js'

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
