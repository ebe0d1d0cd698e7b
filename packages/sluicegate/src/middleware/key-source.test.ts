import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainFacts } from 'sluicegate-testkit/adapters/http-client.js'
import type { Awaitable } from '../awaitable.js'
import { type GivenKey, keyFinder } from './key-source.js'

const found = (given: unknown): Awaitable<unknown> => keyFinder(() => given as GivenKey)(plainFacts({}), {})

test('a function may give a number, which is one key with its text', () => {
  assert.deepEqual([7, '7', 7n].map(found), ['7', '7', '7'])
  assert.deepEqual(found([7, 'ada']), ['7', 'ada'])
})

test('no key is none, and what can be none is a fault', () => {
  for (const none of [undefined, null, '', [], ['ada', null]]) assert.equal(found(none), undefined)
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, true, {}, Symbol('ada'), ['ada', {}]]) {
    assert.throws(() => found(wrong), { code: 'KEY_INVALID', option: 'key' })
  }
})
