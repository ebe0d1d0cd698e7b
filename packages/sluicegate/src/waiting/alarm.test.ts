import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { countTimers } from 'sluicegate-testkit/conformance/timer-count.js'
import { type Clock, manualClock } from '../time/clock.js'
import { Alarm, type Alert } from './alarm.js'
import { type Due, DueHeap } from './due-heap.js'

const SEED = 20_261_121

function noFailure(error: unknown): never {
  throw error
}

function alert(ring: (nowUs: number) => void): Alert {
  return { dueUs: 0, order: 0, place: -1, ring }
}

test('a heap gives back what is in it, soonest first, whatever was removed between', () => {
  const random = new Random(SEED)
  for (let round = 0; round < 300; round++) {
    const heap = new DueHeap<Due>()
    const inside = new Set<Due>()
    for (let i = 0; i < 60; i++) {
      if (random.chance(0.6)) {
        const item: Due = { dueUs: random.integer(0, 20), order: i, place: -1 }
        heap.add(item)
        inside.add(item)
      } else if (inside.size > 0) {
        const item = random.pick([...inside])
        heap.remove(item)
        heap.remove(item)
        inside.delete(item)
      }
    }
    const sorted = [...inside].sort((a, b) => a.dueUs - b.dueUs || a.order - b.order)
    for (const item of sorted) {
      assert.equal(heap.first, item)
      heap.remove(item)
    }
    assert.equal(heap.first, undefined)
  }
})

test('ten thousand alerts take one timer at a time, and none when all are cleared', () => {
  const clock = manualClock()
  const count = countTimers(clock)
  const alarm = new Alarm(clock, noFailure)
  const rung: number[] = []
  const alerts = Array.from({ length: 10_000 }, (_, i) => alert(() => rung.push(i)))
  alerts.forEach((one, i) => void alarm.set(one, 1_000 + i, i))
  assert.deepEqual(count, { set: 1, most: 1, inAll: 1 })
  clock.advance(1.499)
  assert.deepEqual([rung.length, rung[0], rung[499], count.set], [500, 0, 499, 1])
  for (const one of alerts) alarm.clear(one)
  assert.equal(count.set, 0)
  clock.advance(1000)
  assert.equal(rung.length, 500)
})

test('a sooner alert moves the timer, a later one does not', () => {
  const clock = manualClock()
  const count = countTimers(clock)
  const alarm = new Alarm(clock, noFailure)
  const rung: string[] = []
  alarm.set(
    alert(() => rung.push('late')),
    9_000,
    0,
  )
  alarm.set(
    alert(() => rung.push('later')),
    10_000,
    1,
  )
  assert.equal(count.inAll, 1)
  alarm.set(
    alert(() => rung.push('soon')),
    5_000,
    2,
  )
  assert.deepEqual([count.set, count.inAll], [1, 2])
  clock.advance(20)
  assert.deepEqual(rung, ['soon', 'late', 'later'])
  assert.equal(count.set, 0)
})

test('a timer that fires before the clock is there is set again', () => {
  const clock = manualClock()
  const asked: number[] = []
  const early: Clock = {
    nowMs: clock.nowMs,
    after(ms, fn) {
      asked.push(ms)
      return clock.after(ms > 1 ? ms - 1 : ms, fn)
    },
  }
  const rung: number[] = []
  new Alarm(early, noFailure).set(
    alert((nowUs) => rung.push(nowUs)),
    5_000,
    0,
  )
  clock.advance(4.5)
  assert.deepEqual([rung, asked], [[], [5, 1]])
  clock.advance(0.5)
  assert.deepEqual(rung, [5_000])
})

test('a time within a microsecond rings when that is over, also on a clock that stands still in it', () => {
  const clock = manualClock()
  const alarm = new Alarm(clock, noFailure)
  const rung: number[] = []
  alarm.set(
    alert((nowUs) => rung.push(nowUs)),
    alarm.inUs(0.1251),
    0,
  )
  clock.advance(0.1256)
  assert.deepEqual(rung, [])
  clock.advance(0.0004)
  assert.deepEqual(rung, [126])
})

test('a clock without timers is looked at again when real time has gone by', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 0
  const rung: number[] = []
  new Alarm({ nowMs: () => nowMs }, noFailure).set(
    alert((nowUs) => rung.push(nowUs)),
    100_000,
    0,
  )
  nowMs = 40
  t.mock.timers.tick(100)
  assert.deepEqual(rung, [])
  t.mock.timers.tick(59)
  nowMs = 101
  t.mock.timers.tick(1)
  assert.deepEqual(rung, [101_000])
})

test('an alert may set itself again while it rings', () => {
  const clock = manualClock()
  const alarm = new Alarm(clock, noFailure)
  const rung: number[] = []
  const again = alert((nowUs) => {
    rung.push(nowUs)
    if (rung.length < 4) alarm.set(again, nowUs + 2_000, 0)
  })
  alarm.set(again, 2_000, 0)
  clock.advance(100)
  assert.deepEqual(rung, [2_000, 4_000, 6_000, 8_000])
})
