import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RecordTime } from './record-time.js'

const START = 1_000_000_000
const WINDOW_MS = 10_000

test('times that pass evenly, or are a little late, stay as they are', () => {
  const time = new RecordTime(WINDOW_MS, () => START + 1e9)
  for (const ms of [0, 5, 3, 900, -9_000, 901]) assert.equal(time.of(START + ms), START + ms)
})

test('after a step back of the clock that wrote them, times go on from the latest, and return when they are ahead of now', () => {
  let nowMs = START
  const time = new RecordTime(WINDOW_MS, () => nowMs)
  assert.equal(time.of(START), START)
  const hourMs = 3_600_000
  const counted = Array.from({ length: 300 }, (_, i) => {
    nowMs = START + i
    return time.of(START - hourMs + i)
  })
  // A hundred records show the step; the others are in the window again.
  assert.equal(counted.filter((ms) => ms < START - WINDOW_MS).length, 99)
  for (const ms of counted.slice(100)) assert.ok(ms >= START && ms <= nowMs)
  // The clock is set right.
  nowMs = START + 1_000
  assert.equal(time.of(START + 1_000), START + 1_000)
  assert.equal(time.of(START + 900), START + 900)
})

test('a time ahead of now is now, and lets later records keep their times', () => {
  const time = new RecordTime(WINDOW_MS, () => START)
  assert.equal(time.of(START + 1e9), START)
  assert.equal(time.of(START - 50), START - 50)
})

test('a few records from before the window do not move the others', () => {
  const time = new RecordTime(WINDOW_MS, () => START + 1e9)
  for (let i = 0; i < 1_000; i++) {
    assert.equal(time.of(START + i), START + i)
    if (i % 2 === 0) assert.equal(time.of(START - 60_000), START - 60_000)
  }
})
