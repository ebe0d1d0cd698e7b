import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'
import { feltChanges } from 'sluicegate-testkit/suites/layer-suite.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

const WAITS = 120

const redis = await ownRedis()
after(() => redis.stop())
const { client } = redis

const POLICIES: readonly Policy[] = [tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog].map((make) =>
  make({ limit: 40, window: '250ms' }),
)

for (const policy of POLICIES) {
  test(`${policy.algorithm}: waits of one process that come together are served in the order of arrival`, async () => {
    using limiter = createLimiter(policy, { store: redisStore(client), mode: 'exact', timeout: 60_000 })
    const served: number[] = []
    const wait = async (i: number): Promise<void> => {
      const { allowed } = await limiter.wait('k')
      if (allowed) served.push(i)
    }
    const waits = Array.from({ length: WAITS }, (_, i) => wait(i))
    await Promise.all(waits)
    assert.deepEqual(
      served,
      waits.map((_, i) => i),
    )
  })
}

describe('felt changes', async () => {
  const redis = await ownRedis()
  after(() => redis.stop())

  for (const mode of ['exact', 'leased'] as const) {
    feltChanges(`Redis, ${mode}`, (policy) => {
      const store = new RedisScripts(redis.runner, new RedisKeys(`felt ${mode}`))
      const limiter = createLimiter(policy, { store: scriptedStore(store), mode, outage: 'closed', timeout: 60_000 })
      // Answered in order: a peek behind all else comes last, and what follows on it is sent within a few turns.
      const settle = async (): Promise<void> => {
        for (let i = 0; i < 6; i++) {
          await limiter.peek('another')
          await sleep(2)
        }
      }
      return { limiter, settle, stop: () => limiter.close() }
    })
  }
})

describe('given up waits', async () => {
  const redis = await ownRedis()
  after(() => redis.stop())

  let made = 0
  for (const mode of ['exact', 'leased'] as const) {
    givenUpWaits(
      `Redis, ${mode}`,
      (policy) => {
        const store = new RedisScripts(redis.runner, new RedisKeys(`given up ${++made}`))
        const limiter = createLimiter(policy, { store: scriptedStore(store), mode, outage: 'closed', timeout: 60_000 })
        const witness = createLimiter(policy, { store: scriptedStore(store), mode: 'exact', outage: 'closed', timeout: 60_000 })
        // What waits is written and answered in order: a peek behind it comes last, and what goes back follows within two turns.
        const settle = async (): Promise<void> => {
          for (let i = 0; i < 3; i++) {
            await witness.peek('another')
            await sleep(1)
          }
        }
        return {
          limiter,
          witness,
          settle,
          stop: () => {
            limiter.close()
            witness.close()
          },
        }
      },
      300,
    )
  }
})

describe('updated while waiting', async () => {
  // Who waits has booked in the numbers of his time. What was booked ahead is no debt under those of an update, and must not come off it.

  const NAME = 'p'
  /** Nothing flows back by itself while a test runs. */
  const OLD = tokenBucket({ limit: 1, window: '10d', burst: 10, name: NAME })
  const NEW = tokenBucket({ limit: 2, window: '10d', burst: 20, name: NAME })
  const WAITS = 20

  const redis = await ownRedis()
  after(() => redis.stop())

  for (const end of ['abort', 'close'] as const) {
    for (const isSeen of [true, false]) {
      test(`${end} after an update ${isSeen ? 'that the store has seen' : 'of which the store knows nothing yet'} brings no fresh burst`, async () => {
        const store = new RedisScripts(redis.runner, new RedisKeys(`updated ${end} ${isSeen}`))
        const over = (policy: typeof OLD) => createLimiter(policy, { store: scriptedStore(store), outage: 'closed', timeout: 60_000 })
        const limiter = over(OLD)
        const updated = over(NEW)
        const controller = new AbortController()
        const waits = Array.from({ length: WAITS }, () => limiter.wait('k', { signal: controller.signal }).catch(() => undefined))
        await until('all have booked', () => limiter.stats().chargedTokens === WAITS)
        limiter.update(NEW)
        if (isSeen) assert.equal((await updated.take('k')).allowed, false)
        if (end === 'close') limiter.close()
        else controller.abort(new Error('enough'))
        await Promise.all(waits)
        // Over the same connection: before all of these are answered, what goes back has.
        for (let i = 0; i < 5; i++) await updated.peek('another')
        const { remaining } = await updated.peek('k')
        // Takes that did not have to wait spent ten.
        assert.equal(remaining, isSeen ? 0 : 10)
        updated.close()
      })
    }
  }
})
