import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gridCells, simulatedCell } from './use-grid.js'
import { filledUse, type UseResults } from './use-page.js'

const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const RESULTS = JSON.parse(textOf('lab/results/use.json')) as UseResults

test('the tables of the page are those of the saved results', () => {
  const page = textOf('docs/scale.md')
  assert.equal(filledUse(page, RESULTS), page)
  assert.throws(() => filledUse('# Scale', RESULTS), /no place .* for grid/)
})

test('a cell of the grid comes to what was saved of it: clients below their limit lose nothing by leases', async () => {
  const cell = { policy: 'token-bucket', arrivals: 'random', nodes: 16, requestsPerLease: 2, demand: 0.9 } as const
  assert.ok(gridCells(true).some((each) => JSON.stringify(each) === JSON.stringify(cell)))
  const { share, callsPerRequest, p99Ms, isOver } = await simulatedCell(cell, 3_000)
  assert.ok(share >= 0.99 && callsPerRequest <= 0.9 && p99Ms <= 0.3 && !isOver, `${share} ${callsPerRequest} ${p99Ms}`)
})
