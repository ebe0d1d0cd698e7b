import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wordFaults } from './check-docs.js'

test('more words than fit are a fault, in all documents together', () => {
  assert.deepEqual(wordFaults(['one two\n', 'three'], 3), [])
  assert.match(wordFaults(['one two\n', 'three four'], 3)[0] ?? '', /have 4 words, more than 3/)
})

test('marks of Markdown are no words', () => {
  assert.deepEqual(wordFaults(['# one\n\n| two | three |\n|---|---:|\n\n- **four** ```\n'], 4), [])
})
