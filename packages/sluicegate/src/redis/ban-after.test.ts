import { clientsOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { banSuite } from 'sluicegate-testkit/suites/ban-suite.js'
import { createLimiter } from '../create-limiter.js'
import { manualClock } from '../time/clock.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'
import { runnerFor } from './runner-for.js'

const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name }) => name === 'node-redis' || name === 'ioredis'))

const opened = await clientsOfFile(KINDS)

for (const { name } of KINDS) {
  let pairs = 0
  banSuite({
    name: `Redis, ${name}`,
    make: (policy, banAfter, more = {}) => {
      const clock = manualClock(1_789_000_000_000)
      const keys = new RedisKeys(`${name} ${++pairs}`)
      const runner = runnerFor(opened.get(name)?.client)
      const options = { mode: 'exact', banAfter, outage: 'closed', ...more } as const
      const limiter = () => createLimiter(policy, { store: scriptedStore(new RedisScripts(runner, keys)), ...options, clock })
      return { one: limiter(), other: limiter(), clock }
    },
  })
}
