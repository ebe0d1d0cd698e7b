import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { createRedisLimiter, type RedisClient } from './index.js'

const WAITS = 120

let redis: OwnRedis
let client: ReturnType<typeof createClient> & RedisClient

before(async () => {
  redis = await ownRedis()
  client = createClient({ url: redis.server.url }) as ReturnType<typeof createClient> & RedisClient
  await client.connect()
})

after(async () => {
  client.destroy()
  await redis.stop()
})

const POLICIES: readonly Policy[] = [tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog].map((make) =>
  make({ limit: 40, window: '250ms' }),
)

for (const policy of POLICIES) {
  test(`${policy.algorithm}: waits of one process that come together are served in the order of arrival`, async () => {
    using limiter = createRedisLimiter(policy, { client, mode: 'exact', timeoutMs: 60_000 })
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
