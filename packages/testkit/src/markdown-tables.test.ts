import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filledPage, inColumns, markdownTable } from './markdown-tables.js'

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

test('a column with its spread takes two', () => {
  const table = inColumns([7], { a: (n) => String(n), b: (n) => [`${n}`, `${n - 1}..${n + 1}`] })
  assert.deepEqual(table, { head: ['a', 'b', 'quartiles'], rows: [['7', '7', '6..8']] })
})

test('a part of a line stays in its line, a part may lack a place, and filling twice changes nothing', () => {
  const parts = new Map([
    ['one', 'new'],
    ['none', ''],
  ])
  const filled = filledPage('| a | <!-- m-inline:one -->old<!-- /m --> |', 'm', parts, true)
  assert.equal(filled, '| a | <!-- m-inline:one -->new<!-- /m --> |')
  assert.equal(filledPage(filled, 'm', parts, true), filled)
})
