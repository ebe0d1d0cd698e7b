import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'
import { feltChanges, feltGifts } from 'sluicegate-testkit/suites/layer-suite.js'
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

    const gifted = (policy: Policy) => {
      const store = scriptedStore(new RedisScripts(redis.runner, new RedisKeys(`gifts ${mode}`)))
      return createLimiter(policy, { store, mode, outage: 'closed', timeout: 60_000 })
    }
    feltGifts(
      `Redis, ${mode}`,
      (policy) => ({ limiter: gifted(policy), other: gifted(policy) }),
      () => sleep(1300),
    )
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
  // Bookings come back under the numbers in which they were made. Numbers that have seen them as spent give nothing for that.

  const NAME = 'p'
  /** Nothing flows back by itself while a test runs. */
  const OLD = tokenBucket({ limit: 1, window: '10d', burst: 10, name: NAME })
  const NEW = tokenBucket({ limit: 2, window: '10d', burst: 20, name: NAME })
  const WAITS = 20
  /** How many pass after the ten that did not have to wait. */
  const PASS_LATER = { 'before it': 0, 'after it': 10, never: 10 } as const

  const redis = await ownRedis()
  after(() => redis.stop())

  for (const end of ['abort', 'close'] as const) {
    for (const [seen, most] of Object.entries(PASS_LATER)) {
      test(`${end} after an update, whose numbers the store has seen ${seen}, brings no fresh burst`, async () => {
        const store = new RedisScripts(redis.runner, new RedisKeys(`updated ${end} ${seen}`))
        const over = (policy: typeof OLD) => createLimiter(policy, { store: scriptedStore(store), outage: 'closed', timeout: 60_000 })
        using limiter = over(OLD)
        using updated = over(NEW)
        const controller = new AbortController()
        let passed = 0
        const waits = Array.from({ length: WAITS }, () =>
          limiter.wait('k', { signal: controller.signal }).then(
            ({ allowed }) => (passed += allowed ? 1 : 0),
            () => undefined,
          ),
        )
        await until('all have booked', () => limiter.stats().chargedTokens === WAITS)
        if (seen === 'before it') assert.equal((await updated.take('k')).allowed, false)
        limiter.update(NEW)
        if (seen === 'after it') passed += (await updated.take('k')).allowed ? 1 : 0
        if (end === 'close') limiter.close()
        else controller.abort(new Error('enough'))
        await Promise.all(waits)
        // Over the same connection: before all of these are answered, what goes back has.
        for (let i = 0; i < 5; i++) await updated.peek('another')
        for (let i = 0; i < 2 * WAITS; i++) passed += (await updated.take('k')).allowed ? 1 : 0
        // A wait that passed and is aborted gives back what has not refilled since: the last token may lack a few microseconds of it.
        assert.ok(passed <= 10 + most && passed >= 9 + most, `${passed} passed`)
      })
    }
  }
})
