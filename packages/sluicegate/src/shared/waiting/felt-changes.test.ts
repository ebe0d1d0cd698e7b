import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { feltChanges } from 'sluicegate-testkit/suites/layer-suite.js'
import { createLimiter, fixedWindow, gcra, manualClock, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import { casStore } from '../../store/cas.js'
import { memoryStore } from '../../store-testing/memory-store.js'

// What makes room is felt at once by those who have booked ahead already: in memory and over a store, under each algorithm.

const START_MS = 1_760_000_000_300
const policyOf = (algorithm: string, limit: number): Policy => {
  const options = { limit, window: '1s', name: 'p' } as const
  const makers = { 'token-bucket': tokenBucket, 'fixed-window': fixedWindow, 'sliding-window': slidingWindow, 'sliding-log': slidingLog }
  return algorithm === 'gcra' ? gcra({ ...options, burst: limit }) : makers[algorithm as keyof typeof makers](options)
}
const ALGORITHMS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const

function fixture(policy: Policy, where: string) {
  const clock = manualClock(START_MS)
  const limiter =
    where === 'memory'
      ? createLimiter(policy, { clock })
      : createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'exact' })
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  return { clock, limiter, settle }
}

for (const where of ['memory', 'store']) {
  feltChanges(where, (policy) => {
    const { limiter, settle } = fixture(policy, where)
    return { limiter, settle, stop: () => limiter.close() }
  })
}

const SEEDS = shortOrLong(20, 120)

/** Arrivals, aborts, refunds, resets and updates: all end, none twice, and in no window does more pass than its limits and gifts. */
async function live(algorithm: string, seed: number): Promise<void> {
  const random = new Random(seed)
  const { clock, limiter, settle } = fixture(policyOf(algorithm, 10), 'store')
  let limit = 10
  let most = 10
  let gifts = 0
  let asked = 0
  let ended = 0
  let spent = 0
  const aborts: AbortController[] = []
  for (let step = 0; step < 40; step++) {
    const what = random.integer(0, 9)
    if (what < 5) {
      const controller = new AbortController()
      const cost = random.integer(1, 6)
      aborts.push(controller)
      asked++
      limiter
        .wait('k', { cost, signal: controller.signal })
        .then(
          ({ allowed }) => {
            if (allowed) spent += cost
          },
          () => undefined,
        )
        .finally(() => ended++)
    } else if (what === 5) aborts[random.integer(0, aborts.length)]?.abort()
    else if (what === 6) {
      gifts += 3
      await limiter.refund('k', 3)
    } else if (what === 7) {
      gifts += most
      await limiter.reset('k')
    } else if (what === 8) {
      limit = random.integer(6, 30)
      gifts += most
      most = Math.max(most, limit)
      limiter.update(policyOf(algorithm, limit))
    } else clock.advance(random.integer(1, 400))
    await settle()
  }
  for (let ms = 0; ended < asked && ms < 60_000; ms += 100) {
    clock.advance(100)
    await settle()
  }
  assert.equal(ended, asked, `seed ${seed}: ${asked - ended} of ${asked} hang`)
  const windows = Math.ceil((clock.nowMs() - START_MS) / 1000) + 1
  assert.ok(spent <= windows * most + gifts, `seed ${seed}: ${spent} passed`)
  clock.advance(60_000)
  assert.equal((await limiter.peek('k')).remaining, limit, `seed ${seed}: something is left charged`)
  limiter.close()
}

for (const algorithm of ALGORITHMS) {
  test(`${algorithm} over a store: in ${SEEDS} lives of waits and changes none hangs, passes twice or is lost`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await live(algorithm, seed)
  })
}
