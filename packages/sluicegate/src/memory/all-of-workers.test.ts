import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { crewFor, everyNth, shortOrLong } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { manualClock } from '../time/clock.js'

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
