import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean, nearest } from './spelling.js'

const WORDS = ['limit', 'window', 'burst', 'max-keys', 'on-full']

const MEANT: readonly [typed: string, word: string | undefined][] = [
  ['limt', 'limit'],
  ['lmiit', 'limit'],
  ['Limit', 'limit'],
  ['maxKeys', 'max-keys'],
  ['max_keys', 'max-keys'],
  ['onfull', 'on-full'],
  ['brust', 'burst'],
  ['colour', undefined],
  ['', undefined],
  ['l'.repeat(10_000), undefined],
]

for (const [typed, word] of MEANT) {
  test(`"${typed.slice(0, 20)}" is taken for ${word ?? 'nothing'}`, () => assert.equal(nearest(typed, WORDS), word))
}

test('a guess is a question, and no guess is silence', () => {
  assert.equal(didYouMean('limt', WORDS), '; did you mean "limit"?')
  assert.equal(didYouMean('colour', WORDS), '')
})
