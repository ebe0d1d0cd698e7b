import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filled, table, tableMarkdown, targetsTable } from './markdown.js'
import { summaryOf } from './samples.js'

test('a part replaces what stood in its place, and nothing else', () => {
  const document = 'before\n<!-- bench:a -->\nold\n<!-- /bench -->\nbetween\n<!-- bench:b -->\nkept\n<!-- /bench -->\nafter\n'
  const expected = 'before\n<!-- bench:a -->\n\nnew\n\n<!-- /bench -->\nbetween\n<!-- bench:b -->\nkept\n<!-- /bench -->\nafter\n'
  assert.equal(filled(document, new Map([['a', 'new']])), expected)
})

test('filling twice with the same part changes nothing', () => {
  const parts = new Map([['a', '| x |']])
  const once = filled('<!-- bench:a --><!-- /bench -->', parts)
  assert.equal(filled(once, parts), once)
})

test('a part of a line stays in its line', () => {
  const row = '| service | <!-- bench-inline:a -->old<!-- /bench --> |\n'
  assert.equal(filled(row, new Map([['a', 'new']])), '| service | <!-- bench-inline:a -->new<!-- /bench --> |\n')
})

test('a unit that all figures of a column have stands in its head', () => {
  const rows = [
    ['a', '1.5 ms', '2 ms'],
    ['b', '0', '3 ns'],
  ]
  assert.equal(table(['', 'p50', 'p99'], rows), '|  | p50, ms | p99 |\n|---|---:|---:|\n| a | 1.5 | 2 ms |\n| b | 0 | 3 ns |')
})

test('targets that differ in their last part alone share a row', () => {
  const verdict = (what: string, median: number) => ({
    what,
    target: '>= 2',
    measured: summaryOf([median]),
    unit: 'x' as const,
    met: median >= 2,
  })
  const verdicts = [verdict('HTTP, 16 connections', 3), verdict('gRPC', 2), verdict('HTTP, 64 connections', 1)]
  const [, , first = '', second = ''] = targetsTable(verdicts).split('\n')
  assert.match(first, /^\| HTTP, 16\/64 connections \| ≥ 2 \| 3\.00\/1\.00 × \| .* \| met\/\*\*missed\*\* \|$/)
  assert.match(second, /^\| gRPC \| ≥ 2 \| 2\.00 × \| .* \| met \|$/)
})

test('a table has its title above it', () => {
  assert.equal(tableMarkdown({ name: 'n', title: 'T', head: ['', 'b'], rows: [['x', '1']] }), '**T**\n\n|  | b |\n|---|---:|\n| x | 1 |')
})
