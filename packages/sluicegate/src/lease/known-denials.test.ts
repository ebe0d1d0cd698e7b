import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KnownDenials } from './known-denials.js'

const LONGEST_US = 1_000_000

function untils(denials: KnownDenials, ...costs: readonly number[]): readonly number[] {
  return costs.map((tokens) => denials.until(tokens))
}

test('what is denied is denied to larger costs as well, and says nothing of smaller ones', () => {
  const denials = new KnownDenials(LONGEST_US)
  assert.deepEqual(untils(denials, 1, Number.POSITIVE_INFINITY), [0, 0])
  denials.add(3, 100, 0)
  denials.add(5, 70, 0)
  assert.deepEqual(untils(denials, 2, 3, 4, 5, 100), [0, 100, 100, 100, 100])
  denials.add(5, 200, 0)
  assert.deepEqual(untils(denials, 4, 5), [100, 200])
})

test('what is said last of a cost counts, also when it is sooner', () => {
  const denials = new KnownDenials(LONGEST_US)
  denials.add(3, 100, 0)
  denials.add(3, 50, 10)
  assert.equal(denials.until(3), 50)
})

test('nothing is believed for longer than is said, however far the time lies', () => {
  const denials = new KnownDenials(LONGEST_US)
  denials.add(1, Number.POSITIVE_INFINITY, 500)
  assert.equal(denials.until(1), 500 + LONGEST_US)
})

test('a denial that is over already is none', () => {
  const denials = new KnownDenials(LONGEST_US)
  denials.add(1, 100, 100)
  assert.equal(denials.until(1), 0)
})

test('what passed is not denied any more, nor is less; a larger cost still is', () => {
  const denials = new KnownDenials(LONGEST_US)
  denials.add(2, 100, 0)
  denials.add(4, 200, 0)
  denials.passed(1)
  assert.deepEqual(untils(denials, 2, 4), [100, 200])
  denials.passed(3)
  assert.deepEqual(untils(denials, 2, 3, 4), [0, 0, 200])
  denials.clear()
  assert.equal(denials.until(4), 0)
})

test('of many costs the last eight are known, and those that are over make room first', () => {
  const denials = new KnownDenials(LONGEST_US)
  for (let tokens = 9; tokens >= 1; tokens--) denials.add(tokens, 100 + tokens, 0)
  assert.equal(denials.until(9), 108, 'the first was forgotten')
  denials.add(20, 300, 107)
  assert.deepEqual(untils(denials, 7, 8, 20), [0, 108, 300])
})
