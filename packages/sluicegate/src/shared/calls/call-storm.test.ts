import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { countTimers } from 'sluicegate-testkit/conformance/timer-count.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../../create-limiter.js'
import { type Clock, type Decision, manualClock, tokenBucket } from '../../index.js'
import { casStore } from '../../store/cas.js'
import type { CasStore } from '../../store/cas-store.js'
import { memoryStore } from '../../store-testing/memory-store.js'
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

describe('silent store', () => {
  freshWarnings()

  const closed = (): Promise<never> => Promise.reject(new Error('of no known kind'))

  function guarded(): CallGuard {
    return new CallGuard({ serverOf: () => undefined, slotOf: () => undefined }, manualClock(), 100)
  }

  async function failed(guard: CallGuard): Promise<Error> {
    return guard.guarded('k', closed).then(assert.fail, (error) => error)
  }

  test('of a store that was given up before it ever answered the process is warned, once', async () => {
    const codes: unknown[] = []
    const note = (warning: Error & { code?: string }): unknown => codes.push(warning.code)
    process.on('warning', note)
    const well = guarded()
    await well.guarded('k', async () => 'yes')
    for (let i = 0; i < 3; i++) await failed(well)
    assert.deepEqual(codes, [])
    const warned = once(process, 'warning')
    for (let i = 0; i < 2; i++) {
      const silent = guarded()
      for (let n = 0; n < 3; n++) await failed(silent)
    }
    const [warning] = await warned
    assert.match(warning.message, /of no known kind, .*is the client connected/)
    process.off('warning', note)
    assert.deepEqual(codes, ['SLUICEGATE_SILENT_STORE'])
  })

  test('of a client that is not connected the process is warned while the circuit is open, once a minute', async (t) => {
    const messages: string[] = []
    const note = ({ message }: Error): unknown => messages.push(message)
    process.on('warning', note)
    t.after(() => process.off('warning', note))
    const offline = (): Promise<never> => Promise.reject(new Error('The client is offline'))
    const { now } = performance
    for (const laterMs of [0, 59_000, 61_000]) {
      t.mock.method(performance, 'now', () => now.call(performance) + laterMs)
      const guard = guarded()
      await guard.guarded('k', async () => 'yes')
      for (let n = 0; n < 5; n++) await assert.rejects(guard.guarded('k', offline))
    }
    await nextTurn()
    assert.equal(messages.length, 2)
    assert.match(messages[0] as string, /The client is offline: connect the client, .*until then the option outage decides/)
  })

  test('with an open circuit, errors have the last failure as their cause', async () => {
    const guard = guarded()
    for (let n = 0; n < 3; n++) await failed(guard)
    const { message, cause } = await failed(guard)
    assert.match(message, /is not asked for now/)
    assert.match((cause as Error).message, /of no known kind/)
  })
})

const KEYS = 3
const STEP_MS = 10
const PAUSE_MS = 1000
/** After a pause of one second a probe is due within 800 ms, and may wait for a call that was sent before. */
const BACK_MS = 3000

/** Answers after `STEP_MS`, but stands still from `fromMs` for a second: then it answers what has waited. */
function pausing(clock: ReturnType<typeof manualClock>, fromMs: number): CasStore {
  const memory = memoryStore({ clock })
  const answered = <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    const nowMs = clock.nowMs()
    const isPaused = nowMs >= fromMs && nowMs < fromMs + PAUSE_MS
    return new Promise((resolve, reject) => {
      clock.after(isPaused ? fromMs + PAUSE_MS - nowMs : STEP_MS, () => call().then(resolve, reject))
    })
  }
  return {
    name: 'pausing',
    read: (key) => answered(() => memory.read(key)),
    swap: (swap) => answered(() => memory.swap(swap)),
    readAll: (keys) => answered(() => memory.readAll(keys)),
    swapMany: (swaps) => answered(() => memory.swapMany(swaps)),
  }
}

for (const mode of ['exact', 'leased'] as const) {
  for (const keys of [1, KEYS]) {
    test(`a store that stands still for a second under load is asked again afterwards: ${mode}, ${keys} keys`, async () => {
      const clock = manualClock(1_700_000_000_000)
      const fromMs = clock.nowMs() + 500
      const limiter = createLimiter(tokenBucket({ limit: 1_000_000, window: '1s', name: 'many' }), {
        store: casStore(pausing(clock, fromMs)),
        clock,
        mode,
        outage: 'closed',
      })
      const takes: Promise<{ readonly atMs: number; readonly source: Decision['source'] }>[] = []
      const endMs = fromMs + PAUSE_MS + BACK_MS + 200
      while (clock.nowMs() < endMs + 200) {
        const atMs = clock.nowMs()
        for (let i = 0; i < 2 * keys && atMs < endMs; i++) {
          takes.push(Promise.resolve(limiter.take(`k${i % keys}`, 100)).then(({ source }) => ({ atMs, source })))
        }
        clock.advance(STEP_MS)
        for (let i = 0; i < 4; i++) await new Promise(setImmediate)
      }
      const ended = await Promise.all(takes)
      const outages = ended.filter(({ source }) => source === 'outage')
      const isFelt = outages.some(({ atMs }) => atMs > fromMs && atMs < fromMs + PAUSE_MS)
      assert.ok(isFelt, 'no outage during the pause')
      const lastMs = Math.max(...outages.map(({ atMs }) => atMs)) - (fromMs + PAUSE_MS)
      assert.ok(lastMs < BACK_MS, `an outage ${lastMs} ms after the pause`)
      assert.equal(limiter.stats().openCircuits, 0)
      limiter.close()
    })
  }
}
