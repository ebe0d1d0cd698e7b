import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { committedResults, published } from './published.js'

const textOf = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

test('tables and plots of the docs are those of the committed results', () => {
  const made = published(committedResults(), textOf)
  assert.ok(made.size > 0)
  for (const [path, text] of made) assert.ok(textOf(path) === text, `docs/${path} is not what npm run plots makes`)
})
