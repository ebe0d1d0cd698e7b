import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filled } from './markdown.js'

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
