import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { filledScale, scalePlots } from './scale-page.js'
import type { ScaleResults } from './scale-run.js'

const textOf = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const RESULTS = JSON.parse(textOf('lab/results/scale.json')) as ScaleResults

test('the tables and plots of the page are those of the saved results', () => {
  const page = textOf('docs/scale.md')
  assert.equal(filledScale(page, RESULTS), page)
  for (const [name, svg] of scalePlots(RESULTS)) assert.equal(textOf(`docs/plots/${name}`), svg)
})

test('a page without a place for a table is refused', () => {
  assert.throws(() => filledScale('# Scale', RESULTS), /no place <!-- scale:NAME --> for costs/)
})
