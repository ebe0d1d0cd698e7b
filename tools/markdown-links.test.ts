import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { trackedFiles } from './imports-of.js'
import { anchorsOf, linkedHeadings } from './markdown-links.js'

test('a heading has the anchor that GitHub gives it', () => {
  const anchors = anchorsOf(
    '# `take(key)`: What, why?\n\n## Limits\n\n```sh\n# no heading\n```\n\n## Limits\n\n### A [link](b.md) & snake_case\n',
  )
  assert.deepEqual([...anchors], ['takekey-what-why', 'limits', 'limits-1', 'a-link--snake_case'])
})

test('links to headings are found in the document itself and in others, not in code or on the web', () => {
  const text = 'See [a](#one), [b](../x.md#two), [c](https://example.org/y.md#three), `[d](#four)` and [e](z.md).'
  assert.deepEqual(linkedHeadings('docs/policies/gcra.md', text), [
    { target: 'docs/policies/gcra.md', anchor: 'one' },
    { target: 'docs/x.md', anchor: 'two' },
  ])
})

test('every link to a heading in the documents leads to one', () => {
  for (const file of trackedFiles(/\.md$/)) {
    for (const { target, anchor } of linkedHeadings(file, readFileSync(file, 'utf8'))) {
      assert.ok(anchorsOf(readFileSync(target, 'utf8')).has(anchor), `${file}: ${target}#${anchor}`)
    }
  }
})
