import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, test } from 'node:test'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import type { DenialEvent } from '../decision/diagnostics.js'
import { allOf, fixedWindow, type Key, type Policy, type SharedLimiter, slidingLog, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'

// Events and counts of leased takes, and of waits beside them.

const redis = await ownRedis()
after(() => redis.stop())

const WINDOW = fixedWindow({ limit: 40, window: '30d', name: 'window' })
const LOG = slidingLog({ limit: 40, window: '1d', name: 'log' })
const CASES: readonly (readonly [Policy, Key])[] = [
  [WINDOW, 'one'],
  [LOG, 'one'],
  [allOf([WINDOW, LOG]), ['of both', 'of both']],
]

function limiterOf(policy: Policy): SharedLimiter {
  return createLimiter(policy, {
    store: redisStore(redis.client),
    timeout: 10_000,
    outage: 'closed',
    hotKeys: 10,
    lease: 1000,
  })
}

for (const [policy, key] of CASES) {
  test(`${policy.algorithm}: each denial is published once, wherever it was decided, and each take counts as demand once`, async () => {
    const heard: DenialEvent[] = []
    const hear = (event: unknown): void => void heard.push(event as DenialEvent)
    using limiter = limiterOf(policy)
    subscribe('sluicegate:denial', hear)
    try {
      // Some wait for a lease, some are answered at once.
      const first = await Promise.all(Array.from({ length: 50 }, () => limiter.take(key)))
      const later = Array.from({ length: 5 }, () => limiter.take(key))
      assert.ok(later.every((answer) => !(answer instanceof Promise)))
      await limiter.take(key, 3)
      assert.equal(first.filter(({ allowed }) => allowed).length, 40)
    } finally {
      unsubscribe('sluicegate:denial', hear)
    }
    assert.deepEqual(
      heard.map(({ cost }) => cost),
      [...Array.from({ length: 15 }, () => 1), 3],
    )
    assert.ok(heard.every((event) => event.key === key && !event.decision.allowed && event.policy === event.decision.policy))
    const { demand, denials } = limiter.hotKeys()
    assert.deepEqual([demand.map(({ count }) => count), denials.map(({ count }) => count)], [[56], [16]])
    assert.equal(limiter.stats().admittedTokens, 40)
  })
}

for (const [policy, key] of [
  [tokenBucket({ limit: 100, window: '1s', burst: 300, name: 'waited for' }), 'k'],
  [allOf([tokenBucket({ limit: 100, window: '1s', burst: 300, name: 'one of two' }), WINDOW]), ['k', 'waited for']],
] as const) {
  test(`${policy.algorithm}: waits beside leases are served in order, and an impossible cost is denied at once`, async () => {
    using limiter = createLimiter(policy as Policy, {
      store: redisStore(redis.client),
      timeout: 10_000,
      outage: 'closed',
      lease: 50,
    })
    const order: number[] = []
    for (let i = 0; i < 3; i++) await limiter.take(key)
    const waits = [0, 1, 2, 3, 4].map((i) => limiter.wait(key, { maxWait: 30_000 }).then(({ allowed }) => allowed && order.push(i)))
    await Promise.all(waits)
    assert.deepEqual(order, [0, 1, 2, 3, 4])
    assert.equal((await limiter.wait(key, { cost: 1000 })).retryAfterMs, Number.POSITIVE_INFINITY)
    const controller = new AbortController()
    const blocked = limiter.block(key, '1h').then(() => limiter.wait(key, { signal: controller.signal }))
    setImmediate(() => controller.abort(new Error('enough')))
    await assert.rejects(blocked, /enough/)
    await limiter.block(key, 0)
    assert.equal((await limiter.take(key)).allowed, true)
  })
}
