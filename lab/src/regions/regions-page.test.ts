import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { longTest } from 'sluicegate-testkit'
import { DELAYS_MS } from './region-traffic.js'
import { filledRegions, isNear, regionsPlot, type SavedRegions } from './regions-page.js'
import { simulated } from './simulated-regions.js'

const SAVED = 'lab/results/regions.json'
const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

test('the table and the plot are those of the committed run, in which the home and its regions are within the policy', () => {
  const saved = JSON.parse(textOf(SAVED)) as SavedRegions
  const page = textOf('docs/regions.md')
  assert.equal(filledRegions(page, saved), page)
  assert.equal(textOf('docs/plots/regions.svg'), regionsPlot(saved))
  assert.equal(saved.found.find(({ way }) => way === 'home')?.over, 0)
})

test('simulation and lab agree within 10 % in the committed run, in use and in calls to the home', () => {
  const saved = JSON.parse(textOf(SAVED)) as SavedRegions
  assert.equal(saved.simulated.length, 2)
  for (const phase of saved.simulated) assert.ok(isNear(phase, saved.checked), JSON.stringify(phase))
})

/** One run differs from another by several percent: demand is random. */
const OF_FEW_RUNS = 0.2

longTest('the simulation of the library as it is agrees with the committed run', async () => {
  const { checked, seed } = JSON.parse(textOf(SAVED)) as SavedRegions
  for (const phase of await simulated(DELAYS_MS, seed, 2)) assert.ok(isNear(phase, checked, OF_FEW_RUNS), JSON.stringify([phase, checked]))
})
