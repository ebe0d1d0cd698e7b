import assert from 'node:assert/strict'
import { test } from 'node:test'
import { percent, tableMarkdown } from './study-table.js'

test('a share is shown in three significant digits, and none at all as none', () => {
  assert.deepEqual(
    [0, 3, 12, 4_567, 99_999, 100_000].map((part) => percent(part, 100_000)),
    ['0', '0.0030 %', '0.0120 %', '4.57 %', '100.0 %', '100 %'],
  )
})

test('a table has its title above it', () => {
  assert.equal(tableMarkdown({ name: 'n', title: 'T', head: ['', 'b'], rows: [['x', '1']] }), '**T**\n\n|  | b |\n|---|---:|\n| x | 1 |')
})
