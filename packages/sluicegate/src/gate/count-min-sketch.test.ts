import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { fingerprint, high, low } from '../memory/fingerprint.js'
import { CountMinSketch } from './count-min-sketch.js'

const WINDOW_MS = 7_000
const PANE_MS = WINDOW_MS / 7

interface Added {
  readonly key: string
  readonly cost: number
  readonly timeMs: number
}

/** The true sum of a key in the time after `fromMs` up to the newest. */
function sumAfter(records: readonly Added[], key: string | undefined, fromMs: number): number {
  return records.reduce((sum, each) => sum + (each.timeMs >= fromMs && (key === undefined || each.key === key) ? each.cost : 0), 0)
}

function added(sketch: CountMinSketch, { key, cost, timeMs }: Added): number {
  fingerprint(key, 1, 2)
  return sketch.add(low, high, cost, timeMs)
}

function counted(sketch: CountMinSketch, key: string): number {
  fingerprint(key, 1, 2)
  return sketch.count(low, high)
}

test('a count is never below the exact one of the window, and above that of eight sevenths of it by more than epsilon only with the chance delta', () => {
  let counts = 0
  let beyond = 0
  for (let seed = 1; seed <= shortOrLong(40, 150); seed++) {
    const random = new Random(seed)
    const sketch = new CountMinSketch({ width: 64, depth: random.integer(2, 4), windowMs: WINDOW_MS })
    const records: Added[] = []
    let timeMs = random.integer(0, 1e12)
    for (let i = 0; i < 600; i++) {
      timeMs += random.chance(0.01) ? random.integer(0, 3 * WINDOW_MS) : random.integer(0, 40)
      // Some come late, as lines of a log do.
      const own = {
        key: `key ${random.magnitude(1, 300)}`,
        cost: random.magnitude(1, 9),
        timeMs: timeMs - random.pick([0, 0, 0, 500, 3_000]),
      }
      records.push(own)
      assert.ok(added(sketch, own) >= own.cost, `seed ${seed}`)
    }
    const oldestMs = (Math.floor(timeMs / PANE_MS) - 7) * PANE_MS
    const newestMs = Math.max(...records.map((each) => each.timeMs))
    for (let i = 1; i <= 300; i++) {
      const key = `key ${i}`
      const count = counted(sketch, key)
      const least = sumAfter(records, key, newestMs - WINDOW_MS + Number.EPSILON)
      assert.ok(count >= least, `seed ${seed}, ${key}: ${count} is below ${least}`)
      counts++
      if (count > sumAfter(records, key, Math.min(oldestMs, newestMs - PANE_MS * 7)) + sketch.epsilon * sketch.total) beyond++
    }
    assert.ok(sketch.total >= sumAfter(records, undefined, newestMs - WINDOW_MS + 1))
  }
  // The greatest delta of these sketches is that of depth 2; a conservative update stays far below it.
  assert.ok(beyond / counts <= Math.E ** -2, `${beyond} of ${counts}`)
})

test('a pane that leaves the window takes nothing from what was counted after it', () => {
  // Every key shares each counter with others: an update by sums of panes would leave the newer panes too low.
  const sketch = new CountMinSketch({ width: 64, depth: 1, windowMs: WINDOW_MS })
  for (let i = 0; i < 500; i++) added(sketch, { key: `other ${i}`, cost: 10, timeMs: 0 })
  for (let i = 0; i < 30; i++) added(sketch, { key: 'own', cost: 1, timeMs: 6_500 })
  added(sketch, { key: 'last', cost: 1, timeMs: 8_500 })
  assert.ok(counted(sketch, 'own') >= 30)
})

test('records before the window are left out, and a long pause empties all counters', () => {
  const sketch = new CountMinSketch({ width: 64, depth: 3, windowMs: WINDOW_MS })
  assert.equal(added(sketch, { key: 'a', cost: 5, timeMs: 100_000 }), 5)
  assert.equal(added(sketch, { key: 'a', cost: 1, timeMs: 100_000 - 8 * PANE_MS }), -1)
  assert.equal(added(sketch, { key: 'a', cost: 1, timeMs: 100_000 - 7 * PANE_MS }), 6)
  assert.equal(added(sketch, { key: 'b', cost: 1, timeMs: 1e12 }), 1)
  assert.deepEqual([counted(sketch, 'a'), sketch.total], [0, 1])
})

test('a count stays at the most that a pane can hold, and does not begin again at 0', () => {
  const sketch = new CountMinSketch({ width: 64, depth: 2, windowMs: WINDOW_MS })
  for (let i = 0; i < 3; i++) added(sketch, { key: 'a', cost: 2 ** 32 - 1, timeMs: 0 })
  assert.equal(counted(sketch, 'a'), 2 ** 32 - 1)
})

test('the margin is the error that a key without records would meet, and at most epsilon of the total', () => {
  let above = 0
  const keys = 4_000
  const sketch = new CountMinSketch({ width: 256, depth: 3, windowMs: WINDOW_MS })
  for (let i = 0; i < 60_000; i++) added(sketch, { key: `flood ${i}`, cost: 1, timeMs: 0 })
  assert.ok(sketch.margin > 0 && sketch.margin <= sketch.epsilon * sketch.total)
  for (let i = 0; i < keys; i++) if (counted(sketch, `never ${i}`) > sketch.margin * (17 / 16) + 1) above++
  // 1 in 257 on average over all secrets.
  assert.ok(above / keys < 0.05, `${above} of ${keys} above ${sketch.margin}`)
})
