import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { filledLabPage, labPlots } from './lab-page.js'
import { OCEAN_SCENARIOS } from './ocean/ocean-scenarios.js'
import { savedRuns } from './saved-runs.js'
import { SCENARIOS } from './scenarios.js'

const textOf = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

test('the tables and plots of the page are those of the committed runs', () => {
  const page = textOf('lab.md')
  const runs = savedRuns()
  assert.equal(filledLabPage(page, runs), page)
  for (const [name, svg] of labPlots(runs)) assert.equal(textOf(`plots/${name}`), svg)
})

test('the committed runs have every scenario, a soak of at least half an hour, and no violation', () => {
  const { lab, soak } = savedRuns()
  assert.ok(lab !== undefined && soak !== undefined)
  const names = SCENARIOS.map(({ name }) => name).sort()
  assert.deepEqual(lab.results.map(({ name }) => name).sort(), names)
  assert.deepEqual([...new Set(soak.results.map(({ name }) => name))].sort(), names)
  assert.ok(soak.minutes >= 30)
  assert.deepEqual(
    [...lab.results, ...soak.results].flatMap(({ violations }) => violations),
    [],
  )
})

test('the committed runs of the ocean have every scenario and no violation', () => {
  const { ocean, oceanSoak } = savedRuns()
  assert.ok(ocean !== undefined && oceanSoak !== undefined)
  assert.deepEqual(
    ocean.results.map(({ name }) => name),
    OCEAN_SCENARIOS.map(({ name }) => name),
  )
  assert.deepEqual(
    [...ocean.results, ...oceanSoak.results].flatMap(({ violations }) => violations),
    [],
  )
})

test('a page without a place for a table is refused', () => {
  assert.throws(() => filledLabPage('# Lab', savedRuns()), /no place .* for figures/)
})
