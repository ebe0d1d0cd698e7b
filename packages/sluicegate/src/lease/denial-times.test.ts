import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DenialTimes } from './denial-cache.js'

const LONGEST_US = 1_000_000

function untils(denials: DenialTimes, nowUs: number, ...costs: readonly number[]): readonly number[] {
  return costs.map((tokens) => denials.until(tokens, nowUs))
}

test('a denial covers larger costs as well, not smaller ones', () => {
  const denials = new DenialTimes(LONGEST_US)
  assert.deepEqual(untils(denials, 10, 1, Number.POSITIVE_INFINITY), [0, 0])
  denials.add(3, 100, 0)
  denials.add(5, 70, 0)
  assert.deepEqual(untils(denials, 10, 2, 3, 4, 5, 100), [0, 100, 100, 100, 100])
  denials.add(5, 200, 0)
  assert.deepEqual(untils(denials, 10, 4, 5), [100, 200])
})

test('the last time of a cost counts, also when it is earlier', () => {
  const denials = new DenialTimes(LONGEST_US)
  denials.add(3, 100, 0)
  denials.add(3, 50, 10)
  assert.equal(denials.until(3, 10), 50)
})

test('an entry is believed for the longest time, however far its own time lies, and says that time', () => {
  const denials = new DenialTimes(LONGEST_US)
  denials.add(1, Number.POSITIVE_INFINITY, 500)
  assert.deepEqual(
    [500 + LONGEST_US - 1, 500 + LONGEST_US].map((us) => denials.until(1, us)),
    [Number.POSITIVE_INFINITY, 0],
  )
})

test('a denial that has ended already is not cached', () => {
  const denials = new DenialTimes(LONGEST_US)
  denials.add(1, 100, 100)
  assert.equal(denials.until(1, 100), 0)
})

test('a passed cost and smaller ones are no longer denied; a larger one still is', () => {
  const denials = new DenialTimes(LONGEST_US)
  denials.add(2, 100, 0)
  denials.add(4, 200, 0)
  denials.passed(1)
  assert.deepEqual(untils(denials, 10, 2, 4), [100, 200])
  denials.passed(3)
  assert.deepEqual(untils(denials, 10, 2, 3, 4), [0, 0, 200])
  denials.clear()
  assert.equal(denials.until(4, 10), 0)
})

test('the last eight costs are cached, and ended entries make room first', () => {
  const denials = new DenialTimes(LONGEST_US)
  for (let tokens = 9; tokens >= 1; tokens--) denials.add(tokens, 100 + tokens, 0)
  assert.equal(denials.until(9, 10), 108, 'the first was forgotten')
  denials.add(20, 300, 107)
  assert.deepEqual(untils(denials, 107, 7, 8, 20), [0, 108, 300])
})
