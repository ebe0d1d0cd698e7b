import assert from 'node:assert/strict'
import { everyNth, Random, shortOrLong } from 'sluicegate-testkit'
import { attachLimiter, createLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { manualClock } from '../time/clock.js'

const LIMIT = 10
const WINDOW_MS = 1000
const WINDOWS = shortOrLong(12, 60)
const SEEDS = [1, 2, 3].slice(0, shortOrLong(1, 3))
const options = { limit: LIMIT, window: WINDOW_MS }

/** How much of the budget is used, by others or by itself, while one client opens waits and gives them up for ever. */
async function usedShare(policy: Policy, costOf: (i: number) => number, seed: number): Promise<number> {
  const random = new Random(seed)
  const clock = manualClock(1_789_000_000_000)
  const limiter = createLimiter(policy, { clock })
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
