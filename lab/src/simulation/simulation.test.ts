import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { longTest } from 'sluicegate-testkit'
import { simulatedRegions } from './simulated-regions.js'
import { filledRegions, filledScale } from './simulation-page.js'
import { gridCells, simulatedCell } from './use-grid.js'

const textOf = (page: string): string => readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8')
const CELL = { policy: 'token-bucket', arrivals: 'random', nodes: 16, requestsPerLease: 2, demand: 0.9 } as const

test('clients below their limit lose nothing by leases, and the cell stands in the tables of the page', async () => {
  assert.ok(gridCells(true).some((each) => JSON.stringify(each) === JSON.stringify(CELL)))
  const cell = await simulatedCell(CELL, 3_000)
  const { share, callsPerRequest, p99Ms, isOver } = cell
  assert.ok(share >= 0.99 && callsPerRequest <= 0.9 && p99Ms <= 0.3 && !isOver, `${share} ${callsPerRequest} ${p99Ms}`)
  const page = filledScale(textOf('scale.md'), [cell])
  assert.match(page, /\| 2 \| 1 \| (?:99\.\d|100\.0) \|/)
  assert.match(page, /\| never over the policy \| 1 \| all \|/)
  assert.throws(() => filledScale('# Scale', [cell]), /no place .* for grid/)
})

test('the page of regions has a place for what they use', () => {
  const phases = [{ name: 'below', use: 0.987, calls: 0.5 } as const]
  assert.match(filledRegions(textOf('regions.md'), phases), /at 0\.9 x use 99 %, 0\.50 calls a second and region\./)
})

longTest('three regions use what the limit lets pass, below it and after a shift, by a call a second', async () => {
  for (const { name, use, calls } of await simulatedRegions(42, 2)) assert.ok(use >= 0.97 && calls <= 1, `${name} ${use} ${calls}`)
})
