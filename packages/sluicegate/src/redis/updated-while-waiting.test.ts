import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

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
