import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../../create-limiter.js'
import { type Decision, manualClock, tokenBucket } from '../../index.js'
import { casStore } from '../../store/cas.js'
import type { CasStore } from '../../store/cas-store.js'
import { memoryStore } from '../../store-testing/memory-store.js'

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
