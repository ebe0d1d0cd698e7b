import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CREW_ALGORITHMS, crewFor, everyNth, IS_LONG_RUN, Mate, policyOf, Random, shortOrLong } from 'sluicegate-testkit'
import { makeLimiter } from '../create-limiter.js'
import { createLimiter, type Key, type Limiter, manualClock } from '../index.js'

// Threads that end wherever they are. To start one takes long, so most of those who end here are ends of a limiter, each with a core of its
// own, that the engine stops as it stops a thread; see `lives` of the worker. The others are threads.

const START_MS = 1_789_000_000_000
const HOUR_MS = 3_600_000
const YEAR_MS = 366 * 24 * HOUR_MS
const WORKERS = 2
const LIVES = shortOrLong(5, 7)
const ROUNDS = shortOrLong(3, 4)
const THREADS = shortOrLong(1, 2)
const DEATHS = LIVES + THREADS

/** Room for a third of the keys and blocks: threads end while they forget keys and move others in, too. */
const ROOMS = [
  ['one part', { maxKeys: 32 }, {}],
  ['a table that grows', { maxKeys: 8 }, { growTo: 32 }],
] as const

const crew = crewFor({ after }, WORKERS)

for (const [i, { name, cost, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  // In a short run by turns.
  for (const [table, room, inner] of IS_LONG_RUN ? ROOMS : ROOMS.slice(i % 2, (i % 2) + 1)) {
    everyNth(i >> 1, 6)(
      `I8 ${name}: ${DEATHS} ends at random moments, within any verb, in ${table}, leave nothing stuck: every key answers, and later has its whole budget`,
      async (t) => {
        const clock = manualClock(START_MS)
        const takes = 50
        const limiter = makeLimiter(policyOf(specOf(takes, HOUR_MS)), { clock, ...room }, inner)
        const keys = Array.from({ length: 48 }, (_, i) => keyOf(`key ${i}`))
        await endOneAfterAnother(t, limiter, { keys, cost, takesOnly: false }, () => {
          clock.advance(1000)
          for (const key of keys) limiter.take(key, cost)
        })
        for (const key of keys) {
          clock.advance(1000 * HOUR_MS)
          let passed = 0
          for (let i = 0; i < takes + 5; i++) if (limiter.take(key, cost).allowed) passed++
          assert.equal(passed, takes, `${key}`)
        }
        assert.equal(limiter.stats().contentions, 0)
      },
    )
  }

  everyNth((i >> 1) + 1, 6)(`I8 ${name}: who ends within a take loses at most that one operation`, async (t) => {
    const limit = 5000 * cost
    const keys = Array.from({ length: 200 }, (_, i) => keyOf(`key ${i}`))
    const limiter = createLimiter(policyOf(specOf(5000, YEAR_MS)), { clock: manualClock(START_MS), maxKeys: keys.length })
    const passed = await endOneAfterAnother(t, limiter, { keys, cost, takesOnly: true }, () => undefined)
    let lost = 0
    for (const [i, key] of keys.entries()) {
      const whole = limiter.peek(key)
      const spent = limit - whole.remaining
      for (const part of whole.parts ?? []) assert.equal(limit - part.remaining, spent, `${key}: charged to some parts only`)
      assert.ok(spent >= cost * (passed[i] ?? 0), `${key}`)
      lost += spent / cost - (passed[i] ?? 0)
    }
    assert.ok(lost <= DEATHS, `${lost} charged without being counted`)
    const { contentions, evictions } = limiter.stats()
    assert.deepEqual({ contentions, evictions }, { contentions: 0, evictions: 0 })
  })
}

/** Two at the limiter at any time; answers the takes that passed, by key. */
async function endOneAfterAnother(
  t: TestContext,
  limiter: Limiter,
  work: { readonly keys: readonly Key[]; readonly cost: number; readonly takesOnly: boolean },
  between: () => void,
): Promise<readonly number[]> {
  const start = { handle: limiter.handle() }
  const counts = new Int32Array(new SharedArrayBuffer(4 * (work.keys.length + 1)))
  await crew.attach(start)
  for (let round = 0; round < ROUNDS; round++) {
    await crew.ask({ kind: 'lives', lives: LIVES / WORKERS / ROUNDS, seed: 1000 * round, counts, ...work })
    between()
  }
  const random = new Random(8)
  let failure: Error | undefined
  const hire = (seed: number): Mate => {
    const mate = new Mate(start)
    mate.onError((error) => {
      failure ??= error
    })
    t.after(() => mate.terminate())
    mate.start({ kind: 'for-ever', seed, counts, ...work })
    return mate
  }
  let older = hire(1000)
  for (let death = 1; death <= THREADS; death++) {
    const younger = death < THREADS ? hire(1000 + death) : undefined
    const until = Atomics.load(counts, 0) + random.magnitude(100, 20_000)
    while (Atomics.load(counts, 0) < until && failure === undefined) await nextTurn()
    await older.terminate()
    assert.equal(failure, undefined)
    between()
    older = younger ?? older
  }
  return [...counts.subarray(1)]
}
