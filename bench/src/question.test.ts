import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Measurement } from './measure.js'
import { atMost, atMostTimes, of } from './question.js'
import { answerText } from './report.js'
import { summaryOf } from './samples.js'

function measured(subject: string, samples: readonly number[]): Measurement {
  return { subject, ns: summaryOf(samples), grossNs: summaryOf(samples), samples, takes: 1, allowed: 1, voided: 0 }
}

test('a figure at its bound is met, above it missed', () => {
  assert.equal(atMost('a take', measured('ours', [11, 12, 13]), 12).met, true)
  assert.equal(atMost('a take', measured('ours', [12, 12.1, 13]), 12).met, false)
})

test('a ratio is judged by the median over rounds, not by the ratio of medians', () => {
  // A round in which the whole machine was slow weighs on both sides.
  const verdict = atMostTimes('a take', measured('ours', [10, 100, 10]), measured('theirs', [40, 400, 20]), 1 / 4, '1/4')
  assert.equal(verdict.measured.median, 0.25)
  assert.equal(verdict.met, true)
})

test('a verdict about a subject that was not measured is an error', () => {
  assert.throws(() => of([measured('ours', [1])], 'theirs'), /theirs was not measured/)
})

test('the report says of each target whether it was met or missed', () => {
  const ours = measured('ours', [20])
  const text = answerText({
    title: 'T',
    note: 'N',
    unit: 'ns',
    measurements: [ours],
    verdicts: [atMost('x', ours, 25), atMost('y', ours, 12)],
  })
  assert.match(text, /^met +x +target <= 25 ns +20\.0 ns/m)
  assert.match(text, /^MISSED +y +target <= 12 ns +20\.0 ns/m)
})
