import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROOT } from './generator.js'
import { sidebar } from './sidebar.js'

test('every document stands in a group beside the pages', () => {
  const groups = sidebar(ROOT)['/'] ?? []
  assert.ok(groups.length > 5)
  assert.deepEqual(groups.find(({ text }) => text === 'More')?.items?.map(({ link }) => link) ?? [], [], 'name these in sidebar.ts')
})
