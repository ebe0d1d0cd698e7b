import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'
import { createLimiter } from '../create-limiter.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

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
