import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { filledRegions, regionsPlot, type SavedRegions } from './regions-page.js'

const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

test('the table and the plot are those of the committed run, in which the home and its regions are within the policy', () => {
  const saved = JSON.parse(textOf('lab/results/regions.json')) as SavedRegions
  const page = textOf('docs/regions.md')
  assert.equal(filledRegions(page, saved), page)
  assert.equal(textOf('docs/plots/regions.svg'), regionsPlot(saved))
  assert.equal(saved.found.find(({ way }) => way === 'home')?.over, 0)
})
