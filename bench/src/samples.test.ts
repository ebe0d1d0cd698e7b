import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ratios, summaryOf } from './samples.js'

test('the median and the quartiles lie between neighbours, whatever the order of the samples', () => {
  assert.deepEqual(summaryOf([4, 1, 3, 2]), { median: 2.5, lowerQuartile: 1.75, upperQuartile: 3.25, min: 1, max: 4 })
})

test('one sample is its own median, quartiles and range', () => {
  assert.deepEqual(summaryOf([7]), { median: 7, lowerQuartile: 7, upperQuartile: 7, min: 7, max: 7 })
})

test('no samples are refused instead of summed up as nothing', () => {
  assert.throws(() => summaryOf([]), RangeError)
})

test('a ratio compares the samples of the same round', () => {
  assert.deepEqual(ratios([10, 30], [20, 10]), [0.5, 3])
})
