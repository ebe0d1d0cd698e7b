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

test('words of prose are retired in documents and comments, and not in names, code and texts of programs', () => {
  assert.equal(retiredWords('a.ts', '// a newcomer finds no room').length, 1)
  assert.equal(retiredWords('a.ts', 'const a = 1 // begins anew').length, 1)
  assert.equal(retiredWords('a.md', 'Each policy has a table of its own.').length, 1)
  assert.equal(retiredWords('a.md', 'The process that asks the store.').length, 1)
  assert.equal(retiredWords('a.md', 'A thread who stops.').length, 1)
  for (const line of ['const newcomers = 1', "test('starts anew', () => {})", '// what asks has a table of its own'])
    assert.deepEqual(retiredWords('a.ts', line), [], line)
  for (const line of ['The option `newcomers`.', 'A user who waits.', '```ts\nask() // of its own\n```'])
    assert.deepEqual(retiredWords('a.md', line), [], line)
})

test('no source or document has a retired word', () => {
  assert.deepEqual(checkWords(), [])
})
