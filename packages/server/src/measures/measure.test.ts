import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measuresOf } from './measure.js'

/** Two measures of figures that say how often they were read. */
function setUp() {
  let reads = 0
  const read = () => [[{ policy: 'api' }, { first: ++reads, second: 10 * reads }]] as const
  const measures = measuresOf<{ first: number; second: number }>(read, [
    ['counter', 'first_total', 'First.', 'first'],
    ['gauge', 'second', 'Second.', 'second'],
  ])
  return { first: () => shownBy(measures[0]), second: () => shownBy(measures[1]) }
}

function shownBy(measure: ReturnType<typeof measuresOf>[number] | undefined): number | undefined {
  return [...(measure?.samples() ?? [])][0]?.value
}

test('the figures of all rows are read once for each reader, and anew for the next', () => {
  const { first, second } = setUp()
  assert.deepEqual([first(), second()], [1, 10])
  assert.deepEqual([first(), second()], [2, 20])
})

test('a reader of one row alone, or in another order, never sees the same reading twice', () => {
  const { first, second } = setUp()
  assert.deepEqual([second(), second(), first(), first(), second()], [10, 20, 2, 3, 30])
})
