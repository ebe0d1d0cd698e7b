import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { holdingTokens } from 'sluicegate-testkit/leases/manual-authority.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Policy, type SharedLimiter, slidingLog, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'

// What one process does by hand, and another finds that holds a lease of the key, or knows of a denial.

const redis = await ownRedis()
after(() => redis.stop())
const { client } = redis

/** A denial that is known is looked at again after twenty horizons at the latest. */
function limiterOf(policy: Policy, horizonMs = 1000): SharedLimiter {
  return createLimiter(policy, { store: redisStore(client), timeout: 10_000, outage: 'closed', lease: horizonMs })
}

const POLICIES = [
  tokenBucket({ limit: 5, window: '1s', burst: 200 }),
  fixedWindow({ limit: 200, window: '30d' }),
  slidingLog({ limit: 200, window: '1d' }),
]
/** The same with leases short enough to wait for. */
const BRISK = [
  tokenBucket({ limit: 100, window: '1s', burst: 200, name: 'brisk' }),
  fixedWindow({ limit: 200, window: '30d', name: 'brisk' }),
  slidingLog({ limit: 200, window: '1d', name: 'brisk' }),
]

/** Takes until one is denied. */
async function drained(limiter: SharedLimiter, key: string): Promise<number> {
  let passed = 0
  while ((await limiter.take(key)).allowed) passed++
  return passed
}

for (const policy of POLICIES) {
  test(`${policy.algorithm}: another process spends no more than what it holds of a key that is blocked`, async () => {
    using limiter = limiterOf(policy)
    using other = limiterOf(policy)
    await holdingTokens(other, 'elsewhere')
    const { storeCalls } = other.stats()
    await limiter.block('elsewhere', '1m')
    let passed = 0
    while (other.stats().storeCalls === storeCalls || (await other.take('elsewhere')).allowed) {
      if ((await other.take('elsewhere')).allowed) passed++
      assert.ok(passed <= 50, 'a lease at most')
    }
  })

  test(`${policy.algorithm}: another process spends no more than what it holds of a key that is punished`, async () => {
    using limiter = limiterOf(policy)
    using other = limiterOf(policy)
    await holdingTokens(other, 'punished')
    await limiter.penalize('punished', 400)
    const passed = await drained(other, 'punished')
    assert.ok(passed <= 50, `${passed}: a lease at most`)
    assert.ok(!(other.take('punished') instanceof Promise), 'which it knows from then on')
  })

  test(`${policy.algorithm}: after a reset another process goes on with what it holds, and then with what is new`, async () => {
    using limiter = limiterOf(policy)
    using other = limiterOf(policy)
    await limiter.penalize('reset', 100)
    await holdingTokens(other, 'reset')
    await limiter.reset('reset')
    const passed = await drained(other, 'reset')
    assert.ok(passed >= 150, `${passed}`)
  })
}

for (const policy of BRISK) {
  test(`${policy.algorithm}: what comes back, is reset or unblocked in one process is seen in another that knew of a denial`, async () => {
    const horizonMs = 10
    using limiter = limiterOf(policy, horizonMs)
    using other = limiterOf(policy, horizonMs)
    const changes = [
      () => limiter.refund('k', 1000),
      () => limiter.reset('k'),
      async () => {
        await limiter.block('k', '1h')
        await until('the block is known there', async () => (await other.take('k')).retryAfterMs > 1_000_000)
        await limiter.reset('k')
        await limiter.block('k', 0)
      },
    ]
    for (const change of changes) {
      await limiter.penalize('k', 1000)
      await until('it is denied there', async () => !(await other.take('k')).allowed)
      const known = other.take('k')
      assert.ok(!(known instanceof Promise) && !known.allowed, 'from memory')
      await change()
      await until('it passes there', async () => (await other.take('k')).allowed)
    }
  })
}
