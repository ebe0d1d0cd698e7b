import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { countTimers } from 'sluicegate-testkit/conformance/timer-count.js'
import { type Clock, manualClock } from '../../index.js'
import { CallGuard } from './call-guard.js'

// Calls that end in every way and order, in a process that stands still now and then.

const SEEDS = shortOrLong(10, 40)
const STEPS = 300
const TIMEOUT_MS = 100
/** A time-out, one more after each of two stalls, and some turns before it is looked whether an answer came. */
const MOST_PASSED_MS = 4 * TIMEOUT_MS

interface Pending {
  readonly resolve: (value: number) => void
  readonly reject: (error: Error) => void
}

async function storm(seed: number): Promise<void> {
  const random = new Random(seed)
  const times = manualClock()
  let stoodMs = 0
  const count = countTimers(times)
  const clock: Clock = { nowMs: () => times.nowMs() + stoodMs, after: times.after }
  const guard = new CallGuard({ serverOf: ([server]) => server, slotOf: () => undefined }, clock, TIMEOUT_MS)
  const pending: Pending[] = []
  let made = 0
  let settled = 0
  let late = 0
  let longestMs = 0

  const make = (): void => {
    made++
    const fromMs = times.nowMs()
    const done = (): void => {
      settled++
      longestMs = Math.max(longestMs, times.nowMs() - fromMs)
    }
    const call = (): Promise<number> => {
      if (random.chance(0.05)) throw new Error('at once')
      if (random.chance(0.05)) return Promise.reject(new Error('soon'))
      return new Promise((resolve, reject) => pending.push({ resolve, reject }))
    }
    guard.guarded(random.pick(['a', 'b', 'c']), call, () => late++).then(done, done)
  }
  const end = (): void => {
    const [one] = pending.splice(random.integer(0, pending.length - 1), 1)
    if (random.chance(1 / 3)) one?.reject(new Error('broken'))
    else one?.resolve(1)
  }

  for (let step = 0; step < STEPS; step++) {
    const many = random.integer(0, 7)
    for (let i = 0; i < many; i++) {
      if (random.chance(2 / 3)) make()
      else if (pending.length > 0) end()
    }
    if (random.chance(0.03)) stoodMs += random.integer(0, 3 * TIMEOUT_MS)
    if (random.chance(2 / 3)) await new Promise((resolve) => setImmediate(resolve))
    times.advance(random.integer(0, 20))
  }
  for (let ms = 0; ms <= MOST_PASSED_MS; ms += 10) {
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    times.advance(10)
  }
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(settled, made, `seed ${seed}: calls that never settled`)
  assert.equal(count.set, 0, `seed ${seed}: timers left`)
  assert.ok(longestMs <= MOST_PASSED_MS, `seed ${seed}: a call took ${longestMs} ms`)
  const { answered, failed, timedOut } = guard.counts
  assert.ok(answered > 0 && timedOut > 0 && failed > timedOut)
  for (const { resolve } of pending) resolve(1)
  await new Promise((resolve) => setImmediate(resolve))
  assert.ok(late > 0)
}

test('each of many calls settles once and in bounded time, however they end and wherever the process stands still', async () => {
  for (let seed = 1; seed <= SEEDS; seed++) await storm(seed)
})
