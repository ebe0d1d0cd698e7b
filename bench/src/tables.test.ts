import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tableMarkdown } from './tables.js'

test('a table has its title above it', () => {
  assert.equal(tableMarkdown({ name: 'n', title: 'T', head: ['', 'b'], rows: [['x', '1']] }), '**T**\n\n|  | b |\n|---|---:|\n| x | 1 |')
})
