import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { type ManualClock, manualClock } from '../time/clock.js'
import { casStore, casStoreOf } from './cas.js'
import type { CasStore } from './cas-store.js'

const START_MS = 1_700_000_000_000
const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 10, window: '1s', burst: 15, name: 'bucket' }),
  tokenBucket({ limit: 7, window: '1m', name: 'odd-bucket' }),
  gcra({ limit: 10, window: '1s', burst: 3, name: 'gcra' }),
  fixedWindow({ limit: 10, window: '1s', name: 'fixed' }),
  fixedWindow({ limit: 10, window: 'day', timeZone: 'Europe/Berlin', name: 'calendar' }),
  slidingWindow({ limit: 10, window: '1s', name: 'sliding' }),
  slidingWindow({ limit: 100_000, window: '1s', name: 'wide' }),
  slidingLog({ limit: 10, window: '1s', name: 'log' }),
  slidingLog({ limit: 10, window: '1s', name: 'small-log' }),
]

/** A linear congruential generator: the same numbers for the same seed. */
function randoms(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

for (const policy of POLICIES) {
  test(`${policy.name}: two processes over a store decide as one limiter in memory does`, async () => {
    for (const seed of [1, 2, 3, 4].slice(0, shortOrLong(1, 4))) {
      const clock = manualClock(START_MS)
      const store = memoryStore({ clock })
      const limiters = [0, 1].map(() =>
        createLimiter(policy, { store: casStoreOf(store, {}, Number.POSITIVE_INFINITY), clock, mode: 'exact', outage: 'closed' }),
      )
      const twin = createLimiter(policy, { clock })
      const random = randoms(seed)
      for (let step = 0; step < 150; step++) {
        const key = `key ${random(2)}`
        const limiter = limiters[random(2)] as (typeof limiters)[0]
        const verb = (['take', 'take', 'take', 'take', 'peek', 'refund', 'penalize', 'block', 'reset'] as const)[random(9)] as 'take'
        const amount = verb === ('block' as string) ? random(300) : 1 + random(policy.limit === 100_000 ? 30_000 : 4)
        const ours = await limiter[verb](key, amount)
        const theirs = twin[verb](key, amount)
        assert.deepEqual({ ...ours }, { ...theirs, source: 'store' }, `seed ${seed}, step ${step}: ${verb} ${amount}`)
        clock.advance(random(4) === 0 ? random(900) : random(60))
      }
      for (const limiter of limiters) limiter.close()
    }
  })
}

test('of a key that was reset, a permit of before ends nothing of one that was taken at the same microsecond', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '10s', name: 'jobs' }), { store: casStore(memoryStore({ clock })), clock })
  const before = await limiter.take('key')
  await limiter.reset('key')
  const after = await limiter.take('key')
  assert.equal(await before.release(), false)
  assert.equal((await limiter.peek('key')).remaining, 1)
  assert.equal(await after.release(), true)
  limiter.close()
})
test('an uncontended take is one call', async () => {
  const clock = manualClock(START_MS)
  let calls = 0
  const memory = memoryStore({ clock })
  const store = {
    name: 'counted',
    read: (key: string) => {
      calls++
      return memory.read(key)
    },
    swap: (swap: Parameters<typeof memory.swap>[0]) => {
      calls++
      return memory.swap(swap)
    },
  }
  const limiter = createLimiter(POLICIES[0] as Policy, { store: casStore(store), clock, mode: 'exact' })
  await limiter.take('a')
  calls = 0
  for (let i = 0; i < 5; i++) await limiter.take('a')
  assert.equal(calls, 5)
  calls = 0
  await Promise.all(Array.from({ length: 9 }, () => limiter.take('a')))
  assert.equal(calls, 1)
  limiter.close()
})

test('a process with a smaller limit forgives nothing of a window by what it denies', async () => {
  const store = casStore(memoryStore({ clock: manualClock(3_600_000) }))
  const [large, small] = [200, 100].map((limit) => createLimiter(fixedWindow({ limit, window: '1h', name: 'p' }), { store, mode: 'exact' }))
  let passed = 0
  for (let i = 0; i < 150; i++) {
    for (const limiter of [large, large, small, small]) passed += (await limiter?.take('k'))?.allowed ? 1 : 0
    await small?.peek('k')
  }
  assert.equal(passed, 200)
})

/** Limiters over one store at one time, and how many swaps they have made. */
function sideBySide(clock: ManualClock, policies: readonly Policy[]) {
  const memory = memoryStore({ clock })
  let swaps = 0
  const counted: CasStore = {
    name: 'counted',
    read: (key) => memory.read(key),
    swap: (swap) => {
      swaps++
      return memory.swap(swap)
    },
  }
  const limiters = policies.map((policy) =>
    createLimiter(policy, { store: casStoreOf(counted, {}, Number.POSITIVE_INFINITY), clock, mode: 'exact' }),
  )
  return { limiters, swaps: () => swaps }
}

test('versions of a rate side by side write nothing by what they deny, and neither waits for longer than it says', async () => {
  const clock = manualClock(3_600_000)
  const { limiters, swaps } = sideBySide(clock, [
    tokenBucket({ limit: 10, window: '10s', name: 'p' }),
    tokenBucket({ limit: 10, window: '1s', name: 'p' }),
  ])
  const [slow, fast] = limiters as [SharedLimiter, SharedLimiter]
  assert.equal((await slow.take('k', 10)).allowed, true)
  const before = swaps()
  for (let i = 0; i < 90; i += 10) {
    assert.deepEqual([(await fast.take('k')).retryAfterMs, (await slow.take('k')).retryAfterMs], [100 - i, 1000 - i])
    assert.equal((await fast.peek('k')).allowed, false)
    clock.advance(10)
  }
  assert.equal(swaps(), before)
  clock.advance(10)
  assert.equal((await fast.take('k')).allowed, true)
  for (const limiter of limiters) limiter.close()
})

test('versions with other windows side by side write nothing by what they deny, and neither waits for the end of the other one', async () => {
  const clock = manualClock(3_600_000)
  const { limiters, swaps } = sideBySide(clock, [
    fixedWindow({ limit: 100, window: '1m', name: 'p' }),
    fixedWindow({ limit: 10, window: '1s', name: 'p' }),
  ])
  const [long, short] = limiters as [SharedLimiter, SharedLimiter]
  clock.advance(250)
  assert.equal((await long.take('k', 100)).allowed, true)
  const before = swaps()
  for (let i = 0; i < 20; i++) {
    const denied = await short.take('k')
    assert.deepEqual([denied.allowed, denied.retryAfterMs], [false, 750 - i])
    assert.equal((await long.take('k')).allowed, false)
    assert.equal((await short.peek('k')).allowed, false)
    clock.advance(1)
  }
  assert.equal(swaps(), before)
  clock.advance(730)
  assert.equal((await long.take('k')).allowed, false, 'what the short one denied is not forgiven')
  assert.equal((await short.take('k', 10)).allowed, true, 'no longer than it said')
  for (const limiter of [long, short]) limiter.close()
})
