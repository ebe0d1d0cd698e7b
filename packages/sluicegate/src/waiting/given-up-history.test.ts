import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { everyNth, oracleFor, Random, shortOrLong, specOf } from 'sluicegate-testkit'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'
import { turns } from 'sluicegate-testkit/turns.js'
import {
  attachLimiter,
  createLimiter,
  fixedWindow,
  gcra,
  manualClock,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'

const WINDOW_MS = 200
const LIMIT = 6
const options = { limit: LIMIT, window: WINDOW_MS }
const POLICIES: readonly Policy[] = [
  tokenBucket({ ...options, burst: 9 }),
  gcra(options),
  fixedWindow(options),
  slidingWindow(options),
  slidingLog(options),
]
const SEEDS = Array.from({ length: shortOrLong(4, 20) }, (_, i) => 20_261_122 + i)

/** As declared in the guide; a burst of nine flows back in one and a half windows. */
const FURTHEST_MS = 2 * WINDOW_MS

/** Takes, waits, aborts and deadlines at random; then all who still wait give up. */
async function playedOut(policy: Policy, seed: number): Promise<void> {
  const random = new Random(seed)
  const clock = manualClock(1_789_000_000_000)
  using limiter = createLimiter(policy, { clock, maxKeys: 8 })
  const oracle = oracleFor(specOf(policy))
  const passed = (cost: number): unknown => oracle.penalize('k', cost, clock.nowMs())
  const controllers: AbortController[] = []
  const ends: Promise<void>[] = []
  const served: number[] = []
  for (let arrival = 0; arrival < 60; arrival++) {
    const step = random.integer(0, 9)
    const cost = random.integer(1, LIMIT)
    if (step < 2 && limiter.take('k', cost).allowed) passed(cost)
    else if (step < 7) {
      const controller = new AbortController()
      controllers.push(controller)
      const wait = limiter.wait('k', { cost, signal: controller.signal, ...(random.chance(0.3) && { maxWait: random.integer(0, 600) }) })
      ends.push(
        wait.then(
          ({ allowed }) => {
            if (!allowed) return
            served.push(arrival)
            passed(cost)
          },
          () => undefined,
        ),
      )
    } else if (step < 9) {
      for (let ms = random.integer(0, 60); ms > 0; ms--) {
        clock.advance(1)
        await turns()
      }
    } else if (controllers.length > 0) random.pick(controllers).abort(new Error('enough'))
    await turns()
  }
  for (const controller of controllers) controller.abort(new Error('enough'))
  await Promise.all(ends)
  assert.deepEqual(
    served,
    served.toSorted((a, b) => a - b),
  )
  clock.advance(FURTHEST_MS)
  if (oracle.peek('k', 1, clock.nowMs()).allowed) assert.equal(limiter.peek('k', 1).allowed, true)
  // What a sliding window kept of them fades in the window after that.
  if (policy.algorithm === 'sliding-window') clock.advance(WINDOW_MS)
  // Whatever would pass had the others never been passes, but for what a booking that was given up left behind, which is over by now.
  for (let cost = LIMIT; cost > 0; cost--) {
    if (oracle.peek('k', cost, clock.nowMs()).allowed) return assert.equal(limiter.peek('k', cost).allowed, true, `cost ${cost}`)
  }
}

for (const policy of POLICIES) {
  test(`${policy.algorithm}: in ${SEEDS.length} histories waits are served in order, and those given up leave nothing behind for longer than declared`, async () => {
    for (const seed of SEEDS) {
      try {
        await playedOut(policy, seed)
      } catch (error) {
        throw new Error(`seed ${seed}: ${error}`)
      }
    }
  })
}

givenUpWaits(
  'memory',
  (policy) => {
    const clock = manualClock(1_789_000_003_000)
    const limiter = createLimiter(policy, { clock, maxKeys: 20 })
    return {
      limiter,
      witness: attachLimiter(limiter.handle(), { clock }),
      settle: turns,
      advance: async (ms) => {
        clock.advance(ms)
        await turns()
      },
      stop: () => limiter.close(),
    }
  },
  shortOrLong(500, 1_200),
)

describe('endless waits', () => {
  const LIMIT = 10
  const WINDOW_MS = 1000
  const WINDOWS = shortOrLong(12, 30)
  const SEEDS = [1, 2, 3].slice(0, shortOrLong(1, 3))
  const options = { limit: LIMIT, window: WINDOW_MS }

  /** How much of the budget is used, by others or by itself, while one client opens waits and gives them up for ever. */
  async function usedShare(policy: Policy, costOf: (i: number) => number, seed: number): Promise<number> {
    const random = new Random(seed)
    const clock = manualClock(1_789_000_000_000)
    const limiter = createLimiter(policy, { clock, maxKeys: 100 })
    // As in another thread: it knows nothing of who waits in the queue here.
    const others = attachLimiter(limiter.handle(), { clock })
    let passed = 0
    let open: AbortController[] = []
    for (let ms = 0, i = 0; ms < WINDOWS * WINDOW_MS; ms += 5, i++) {
      const controller = new AbortController()
      const cost = costOf(i)
      limiter.wait('k', { cost, signal: controller.signal }).then(
        ({ allowed }) => {
          if (allowed) passed += cost
        },
        () => undefined,
      )
      open.push(controller)
      if (random.chance(0.5)) {
        for (const gone of open) gone.abort()
        open = []
      }
      if (others.take('k').allowed) passed++
      clock.advance(5)
      await Promise.resolve()
    }
    for (const gone of open) gone.abort()
    limiter.close()
    return passed / (WINDOWS * LIMIT)
  }

  const POLICIES = [tokenBucket(options), gcra(options), fixedWindow(options), slidingWindow(options), slidingLog(options)]

  // In a short run each algorithm has one of them at most, by turns.
  for (const [i, policy] of POLICIES.entries()) {
    for (const [j, [costs, costOf]] of (
      [
        ['the whole limit', () => LIMIT],
        ['nearly all of it, by turns', (i: number) => LIMIT - (i % 3)],
      ] as const
    ).entries()) {
      everyNth(i + j, 4)(`${policy.algorithm}: waits for ${costs}, opened and given up for ever, waste little of the budget`, async () => {
        for (const seed of SEEDS) {
          const share = await usedShare(policy, costOf, seed)
          assert.ok(share > 0.75, `seed ${seed}: ${share} was used`)
        }
      })
    }
  }
})
