import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogClock } from './log-clock.js'

const START = Date.UTC(2026, 9, 10)
const LATE_MS = 10_000
const HOUR_MS = 3_600_000
const WILD = [Date.UTC(2200, 0), 0, 1_700_000, Date.UTC(2000, 0), START - 2 * HOUR_MS, START + 5 * HOUR_MS]

/** The times at which the records of a log count, as differences from START, in the order of the log. */
function counted(times: readonly number[], nowMs?: () => number): { at: number[]; clock: LogClock<number> } {
  const at: number[] = []
  const order: number[] = []
  const clock = new LogClock<number>({
    lateMs: LATE_MS,
    nowMs,
    copyOf: (record) => record,
    onItem: (record, timeMs) => {
      order.push(record)
      at.push(timeMs - START)
    },
  })
  for (const [i, timeMs] of times.entries()) clock.add(i, timeMs)
  clock.end()
  assert.deepEqual(order, Array.from(times.keys()), 'each record once, in the order of the log')
  return { at, clock }
}

/** A log without wild times: two records a second, some of them late, with a pause. */
function steady(records: number): number[] {
  return Array.from({ length: records }, (_, i) => START + i * 500 - (i % 7 === 3 ? 9_000 : 0) + (i > records / 2 ? HOUR_MS : 0))
}

test('times that pass, pause, or are a little late, stay as they are', () => {
  for (const times of [steady(500), Array.from({ length: 300 }, (_, i) => START + i * HOUR_MS), [START], []]) {
    const { at, clock } = counted(times)
    assert.deepEqual(
      at,
      Array.from(times, (timeMs) => timeMs - START),
    )
    assert.deepEqual([clock.wild, clock.steps], [0, 0])
  }
})

test('a few records of a wild time change the times of no others, wherever they are', () => {
  for (const step of [1, 500, HOUR_MS]) {
    const times = Array.from({ length: 400 }, (_, i) => START + i * step)
    for (const wildMs of WILD) {
      for (const at of [0, 1, 150, 399, 400]) {
        for (const number of [1, 3, 40]) {
          const last = times[Math.min(at, times.length - 1)] as number
          if (Math.abs(wildMs - last) < 400 * step + LATE_MS) continue
          // At an end a time within a year is a pause.
          if (Math.abs(wildMs - last) < 366 * 24 * HOUR_MS && (at === 0 ? wildMs < last : at >= 399 && wildMs > last)) continue
          // The last of a log whose records are all far apart are outnumbered.
          if (step === HOUR_MS && at >= 399 && number > 1) continue
          const wild = Array.from({ length: number }, () => wildMs)
          const { at: found, clock } = counted([...times.slice(0, at), ...wild, ...times.slice(at)])
          const name = `${number} of ${new Date(wildMs).toISOString()} before record ${at}, ${step} ms apart`
          assert.deepEqual(
            [...found.slice(0, at), ...found.slice(at + number)],
            Array.from(times, (ms) => ms - START),
            name,
          )
          assert.deepEqual([clock.wild, clock.steps], [number, 0], name)
        }
      }
    }
  }
})

test('after a step back of the clock that wrote them, times go on from the latest, until that clock is ahead again', () => {
  const before = Array.from({ length: 500 }, (_, i) => START + i * 100)
  const after = before.map((ms) => ms + 50_000 - HOUR_MS)
  const right = before.map((ms) => ms + 120_000)
  const { at, clock } = counted([...before, ...after, ...right])
  assert.deepEqual(
    at.slice(0, 500),
    Array.from(before, (ms) => ms - START),
  )
  assert.deepEqual(
    at.slice(500, 1_000),
    Array.from(before, (ms) => ms - START + 49_900),
  )
  assert.deepEqual(
    at.slice(1_000),
    Array.from(right, (ms) => ms - START),
  )
  assert.deepEqual([clock.wild, clock.steps], [0, 1])
})

test('records that come now are not ahead of now, and a wild time among them ends no shift', () => {
  let nowMs = START
  const times: number[] = []
  const add = (timeMs: number): number => times.push(timeMs)
  for (let i = 0; i < 200; i++) add(START - 20_000 + i * 100)
  for (let i = 0; i < 200; i++) add(START - HOUR_MS + i)
  for (const wildMs of WILD) add(wildMs)
  for (let i = 200; i < 400; i++) add(START - HOUR_MS + i)
  const { at } = counted(times, () => nowMs++)
  for (const ms of [...at.slice(200, 400), ...at.slice(-200)]) assert.ok(ms >= -LATE_MS && ms <= 2_000, `${ms}`)
})

test('of two servers whose clocks differ each record counts near the others', () => {
  const times = Array.from({ length: 2_000 }, (_, i) => START + i * 100 + (i % 3 === 0 ? 5 * HOUR_MS : 0))
  const { at } = counted(times)
  assert.ok((at.at(-1) as number) - (at[0] as number) < 400_000, 'time passes as it passed')
  for (let i = 300; i < 2_000; i++) assert.ok(Math.abs((at[i] as number) - (at[0] as number) - i * 100) < 12_000, `record ${i}`)
})
