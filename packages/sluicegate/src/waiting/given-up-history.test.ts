import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oracleFor, Random, shortOrLong, specOf } from 'sluicegate-testkit'
import { turns } from 'sluicegate-testkit/turns.js'
import { createLimiter, fixedWindow, gcra, manualClock, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'

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
