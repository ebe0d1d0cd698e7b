import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ratios, summaryOf } from 'sluicegate-testkit/samples.js'
import { freshKeys, idleWalk, inOneLoop, inTurns, madeKeys, sink, walkOf } from './key-row.js'
import { disturbed, usage } from './machine.js'
import type { Measurement } from './measure.js'
import { atMost, atMostTimes, of } from './question.js'

function measured(subject: string, samples: readonly number[]): Measurement {
  return { subject, ns: summaryOf(samples), grossNs: summaryOf(samples), samples, takes: 1, allowed: 1, voided: 0 }
}

test('a figure at its bound is met, above it missed', () => {
  assert.equal(atMost('a take', measured('ours', [11, 12, 13]), 12).met, true)
  assert.equal(atMost('a take', measured('ours', [12, 12.1, 13]), 12).met, false)
})

test('a ratio is judged by the median over rounds, not by the ratio of medians', () => {
  // A round in which the whole machine was slow weighs on both sides.
  const verdict = atMostTimes('a take', measured('ours', [10, 100, 10]), measured('theirs', [40, 400, 20]), '1/4')
  assert.equal(verdict.measured.median, 0.25)
  assert.equal(verdict.met, true)
})

test('a verdict about a subject that was not measured is an error', () => {
  assert.throws(() => of([measured('ours', [1])], 'theirs'), /theirs was not measured/)
})

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

const start = { atMs: 0, machineMs: 1_000, subjectMs: 500 }

test('what the subject itself used is no disturbance, on however many cores', () => {
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_300, subjectMs: 800 }, 0), false)
})

test('another process that used a sixth of a core makes a repeat void', () => {
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_180, subjectMs: 650 }, 0), true)
})

test('work on the core that a subject leaves free does not disturb it', () => {
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_300, subjectMs: 650 }, 1), false)
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_300, subjectMs: 600 }, 1), true)
})

test('two ticks of others are no evidence', () => {
  assert.equal(disturbed(start, { atMs: 50, machineMs: 1_070, subjectMs: 550 }, 0), false)
})

test('a reading counts what this very process has used', () => {
  const before = usage(process.pid)
  for (let i = 0; i < 1e8; i++) Math.random()
  const { machineMs, subjectMs } = usage(process.pid)
  assert.ok(machineMs > before.machineMs)
  assert.ok(process.platform !== 'linux' || subjectMs > before.subjectMs)
})

function counting(awaited: boolean, allow: (nth: number) => boolean) {
  const asked: string[] = []
  const take = (key: string): unknown => {
    asked.push(key)
    const answer = { allowed: allow(asked.length) }
    return awaited ? Promise.resolve(answer) : answer
  }
  return { asked, contender: { take, passed: (answer: unknown) => (answer as { allowed: boolean }).allowed, awaited } }
}

test('a walk takes exactly as often as asked, and counts what passed', async () => {
  const { asked, contender } = counting(false, (nth) => nth % 3 !== 0)
  const { allowed } = await inOneLoop(walkOf(contender, madeKeys(100)), 9)
  assert.equal(asked.length, 9)
  assert.equal(allowed, 6)
})

test('a walk goes on where it ended, so that all keys come', async () => {
  const { asked, contender } = counting(false, () => true)
  const walk = walkOf(contender, madeKeys(10))
  for (let i = 0; i < 50; i++) await walk(10)
  assert.equal(new Set(asked).size, 10)
})

test('an awaited walk counts a rejection as a denial', async () => {
  const refusing = { take: () => Promise.reject(new Error('denied')), passed: () => true, awaited: true }
  assert.equal((await inOneLoop(walkOf(refusing, madeKeys(1)), 5)).allowed, 0)
})

test('an awaited walk takes one after the other', async () => {
  const { asked, contender } = counting(true, () => true)
  assert.equal((await inOneLoop(walkOf(contender, madeKeys(1)), 7)).allowed, 7)
  assert.equal(asked.length, 7)
})

test('each turn takes its share and a turn of the event loop comes between', async () => {
  let turns = 0
  let watching = true
  const watch = (): void => {
    turns++
    if (watching) setImmediate(watch)
  }
  setImmediate(watch)
  const { asked, contender } = counting(false, () => true)
  const { allowed } = await inTurns(walkOf(contender, madeKeys(1)), 20, 4)
  watching = false
  assert.equal(asked.length, 80)
  assert.equal(allowed, 80)
  assert.ok(turns >= 19, `${turns} turns`)
})

test('the loop that is subtracted asks for the same keys and takes none', async () => {
  const row = madeKeys(10)
  assert.equal(await idleWalk(row)(3), 0)
  assert.equal(sink.last, row.at(2))
})

test('fresh keys are the same keys each time, in strings of their own', () => {
  const row = freshKeys(1_000)
  for (let i = 0; i < 5_000; i++) assert.ok(row.keys.includes(row.at(i)))
  assert.equal(row.at(3), row.at(3))
})
