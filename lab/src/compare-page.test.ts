import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { comparisonPlot, filledComparison, type SavedComparison } from './compare-page.js'

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const COMPARISON = JSON.parse(textOf('lab/results/many-servers.json')) as SavedComparison

test('the table and the plot of the page are those of the committed comparison', () => {
  const page = textOf('docs/many-servers.md')
  assert.equal(filledComparison(page, COMPARISON), page)
  assert.equal(textOf('docs/plots/many-servers.svg'), comparisonPlot(COMPARISON))
})

test('a page without a place for the table is refused', () => {
  assert.throws(() => filledComparison('# One limit', COMPARISON), /no place .* for ways$/)
})
