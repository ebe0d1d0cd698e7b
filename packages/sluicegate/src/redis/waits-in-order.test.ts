import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'

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
