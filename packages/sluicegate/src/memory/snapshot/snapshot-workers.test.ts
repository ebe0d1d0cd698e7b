import assert from 'node:assert/strict'
import { after } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CREW_ALGORITHMS, crewFor, everyNth, Mate, policyOf } from 'sluicegate-testkit'
import { createLimiter, type Key, type Limiter, manualClock, type Policy, restoreLimiter, StoreError } from '../../index.js'

// Snapshots one after another while worker threads are at it. The clock stands still: nothing comes back by itself.

const START_MS = 1_789_000_000_000
const MONTH_MS = 30 * 86_400_000
const NAMES = ['a', 'b', 'c']
const MAX_KEYS = 20
/** More than the workers take in all, and fewer. */
const LARGER = 4000
const LARGE = 3000
const TAKES = 400
const UPDATES = 120
const WILD_MS = 40

const crew = crewFor({ after }, 2)

// In a short run each algorithm has one of the three at most, by turns: the last one starts a thread of its own.
for (const [i, { name, cost, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  const clock = manualClock(START_MS)
  const keys = NAMES.map(keyOf)
  const [large, larger] = [LARGE, LARGER].map((takes) => policyOf(specOf(takes, MONTH_MS))) as [Policy, Policy]

  everyNth(i, 10)(`${name}: a snapshot taken while workers take holds what was spent at some time while it was taken`, async (t) => {
    const limiter = createLimiter(large, { clock, maxKeys: MAX_KEYS })
    await crew.attach({ handle: limiter.handle() })
    const taken = await whileBusy(crew.ask({ kind: 'take', keys, rounds: TAKES, cost }), () => checkMoment(limiter, keys))
    t.diagnostic(`${taken} snapshots`)
    for (const key of keys) assert.equal(spentOf(limiter, key), 2 * TAKES * cost)
  })

  everyNth(i + 1, 10)(`${name}: the same while workers put one policy after another in force`, async (t) => {
    const limiter = createLimiter(large, { clock, maxKeys: MAX_KEYS })
    await crew.attach({ handle: limiter.handle() })
    const storm = crew.ask({ kind: 'storm', keys, cost, policies: [larger, large], rounds: UPDATES })
    let contended = 0
    const taken = await whileBusy(storm, () => {
      try {
        checkMoment(limiter, keys)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        contended++
      }
    })
    t.diagnostic(`${taken} snapshots, ${contended} of them given up`)
    assert.ok(taken > contended)
  })

  everyNth(i + 2, 10)(`${name}: a snapshot taken while a worker does anything at all can be restored and used`, async () => {
    const limiter = createLimiter(large, { clock, maxKeys: MAX_KEYS })
    const mate = new Mate({ handle: limiter.handle() })
    const counts = new Int32Array(new SharedArrayBuffer(4 * (1 + keys.length)))
    try {
      mate.start({ kind: 'for-ever', keys, cost, seed: 7, counts, takesOnly: false })
      for (let calls = 0; calls === 0; calls = Atomics.load(counts, 0)) await nextTurn()
      const untilMs = performance.now() + WILD_MS
      while (performance.now() < untilMs) {
        const restored = restoreLimiter(limiter.snapshot(), { clock })
        for (const key of keys) {
          restored.take(key, cost)
          restored.reset(key)
          assert.equal(spentOf(restored, key), 0)
        }
        restored.close()
      }
    } finally {
      await mate.terminate()
    }
  })
}

/** Does something again and again, until the promise is fulfilled; at least once. How often. */
async function whileBusy(promise: Promise<unknown>, something: () => void): Promise<number> {
  let isBusy = true
  const ended = promise.finally(() => {
    isBusy = false
  })
  let times = 0
  do {
    something()
    times++
    await nextTurn()
  } while (isBusy)
  await ended
  return times
}

function checkMoment(limiter: Limiter, keys: readonly Key[]): void {
  const before = keys.map((key) => spentOf(limiter, key))
  const restored = restoreLimiter(limiter.snapshot(), { clock: manualClock(START_MS) })
  const later = keys.map((key) => spentOf(limiter, key))
  for (const [i, key] of keys.entries()) {
    const spent = spentOf(restored, key)
    assert.ok((before[i] as number) <= spent && spent <= (later[i] as number), `${key}: ${before[i]} <= ${spent} <= ${later[i]}`)
  }
  restored.close()
}

function spentOf(limiter: Limiter, key: Key): number {
  const { limit, remaining } = limiter.peek(key)
  return limit - remaining
}
