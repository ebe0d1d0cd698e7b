import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CREW_ALGORITHMS, crewFor, everyNth, IS_LONG_RUN, Mate, policyOf, Random, shortOrLong } from 'sluicegate-testkit'
import { makeLimiter } from '../create-limiter.js'
import {
  allOf,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Key,
  type Limiter,
  manualClock,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'

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

describe('all of workers', () => {
  // Several policies at once, from several threads: who checks all of them first and updates them then, unlocked, lets too many through.

  const WORKERS = shortOrLong(2, 4)
  const START_MS = 1_789_000_000_000

  const crew = crewFor({ after }, WORKERS)

  test('I1, I2: threads that take from several policies at once admit what the tightest of them allows, neither more nor fewer', async () => {
    const clock = manualClock(START_MS)
    const parts = [
      tokenBucket({ limit: 60, window: '1s', burst: 60 }),
      fixedWindow({ limit: 50, window: '1s' }),
      slidingWindow({ limit: 70, window: '1s' }),
      slidingLog({ limit: 55, window: '1s' }),
      gcra({ limit: 80, window: '1s', burst: 80 }),
    ]
    const limiter = createLimiter(allOf(parts), { clock, maxKeys: 100 })
    await crew.attach({ handle: limiter.handle() })
    const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`)
    for (let round = 0; round < shortOrLong(4, 10); round++) {
      const passed = (await crew.ask({ kind: 'take', keys, rounds: 40 })) as number[][]
      for (const i of keys.keys()) assert.equal(sumOf(passed, i), 50, `round ${round}, key ${i}`)
      // Until nothing of this round counts any more, in any of them.
      clock.advance(3000)
    }
  })

  const SHARED: readonly (readonly [string, Policy])[] = [
    ['token bucket', tokenBucket({ limit: 50, window: '1h' })],
    ['gcra', gcra({ limit: 50, window: '1h', burst: 50 })],
    ['fixed window', fixedWindow({ limit: 50, window: '30d' })],
    ['sliding window, packed', slidingWindow({ limit: 50, window: '30d' })],
    ['sliding log, slots of 8 bytes', slidingLog({ limit: 50, window: '1h' })],
    ['concurrency', concurrency({ limit: 50, ttl: '1h' })],
  ]

  for (const [i, [name, team]] of SHARED.entries()) {
    everyNth(i, 2)(
      `I1, I2, I4: users of several teams, from several threads: no user has more than his own, no team more than it shares by ${name}`,
      async () => {
        const user = slidingLog({ limit: 9, window: '1h' })
        const limiter = createLimiter(allOf([user, team]), { clock: manualClock(START_MS), maxKeys: 200 })
        await crew.attach({ handle: limiter.handle() })
        // Seven users could have 63 between them.
        const keys = Array.from({ length: 70 }, (_, i) => [`user ${i}`, `team ${i % 10}`])
        const passed = (await crew.ask({ kind: 'take', keys, rounds: 5 })) as number[][]
        const byTeam = new Array<number>(10).fill(0)
        for (const i of keys.keys()) {
          const own = sumOf(passed, i)
          assert.ok(own <= 9, `user ${i}: ${own}`)
          byTeam[i % 10] = (byTeam[i % 10] ?? 0) + own
          // A take that the team denied cost the user nothing, and the other way round.
          const [ofUser, ofTeam] = limiter.peek(keys[i] as string[]).parts ?? []
          assert.deepEqual([ofUser?.remaining, ofTeam?.remaining], [9 - own, 0])
        }
        assert.deepEqual(byTeam, new Array(10).fill(50))
      },
    )
  }

  test('I4: what threads are denied is charged to no policy', async () => {
    const clock = manualClock(START_MS)
    const parts = [
      fixedWindow({ limit: 100_000, window: '1h' }),
      tokenBucket({ limit: 10, window: '1h' }),
      slidingLog({ limit: 1000, window: '1h' }),
    ]
    const limiter = createLimiter(allOf(parts), { clock, maxKeys: 100 })
    await crew.attach({ handle: limiter.handle() })
    const passed = (await crew.ask({ kind: 'take', keys: ['hot'], rounds: 2000 })) as number[][]
    assert.equal(sumOf(passed, 0), 10)
    assert.deepEqual(
      limiter.peek('hot').parts?.map(({ remaining }) => remaining),
      [99_990, 0, 990],
    )
  })

  /** What all workers passed on one key. */
  function sumOf(passed: readonly (readonly number[])[], key: number): number {
    return passed.reduce((sum, byKey) => sum + (byKey[key] ?? 0), 0)
  }
})
