import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkWords, retiredWords } from './check-words.js'

test('a retired word is found with its place, in comments and in names', () => {
  assert.match(retiredWords('a.ts', 'const one = 1\n// nobody waits')[0] ?? '', /^a\.ts:2: "nobody" is a retired word; write /)
  for (const line of ['class ToldDenial {', 'const toldBudget = 1', 'Whoever asks', 'so many tokens', 'the key is as good as new']) {
    assert.equal(retiredWords('a.ts', line).length, 1, line)
  }
})

test('words that only contain one are fine', () => {
  for (const line of ['const untold = 1', 'anybodyElse', 'gates', 'a queue of the key'])
    assert.deepEqual(retiredWords('a.ts', line), [], line)
})

test('no source or document has a retired word', () => {
  assert.deepEqual(checkWords(), [])
})
