import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filledPage, markdownTable } from './markdown-tables.js'

test('figures stand to the right of their names', () => {
  assert.equal(markdownTable(['a', 'b'], [['c', '1']], true), '| a | b |\n|---|---:|\n| c | 1 |')
  assert.equal(markdownTable(['a', 'b'], []), '| a | b |\n|---|---|')
})

test('a part replaces what stood in its place, others stay, and one without a place is refused', () => {
  const page = 'x <!-- m:one -->old $& text<!-- /m --> <!-- m:two -->kept<!-- /m --> y'
  const filled = filledPage(page, 'm', new Map([['one', "new $' text"]]))
  assert.equal(filled, "x <!-- m:one -->\n\nnew $' text\n\n<!-- /m --> <!-- m:two -->kept<!-- /m --> y")
  assert.throws(() => filledPage(page, 'm', new Map([['three', '']])), /no place <!-- m:NAME --> for three/)
})
