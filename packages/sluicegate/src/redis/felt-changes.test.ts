import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { feltChanges } from 'sluicegate-testkit/suites/layer-suite.js'
import { createLimiter } from '../create-limiter.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

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
