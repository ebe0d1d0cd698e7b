import { after } from 'node:test'
import { createClient } from '@redis/client'
import { shortOrLong } from 'sluicegate-testkit'
import { allow, DOCUMENTED_COMMANDS, ownRedis, userUrl } from 'sluicegate-testkit/redis/own-redis.js'
import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overRedis } from 'sluicegate-testkit/stores/store-limiters.js'
import { redis as redisStore } from './redis.js'
import { nodeRedisRunner } from './runners/node-redis.js'

const redis = await ownRedis()
// As a user who may do what is documented and nothing else, but for this suite's own look at the keys.
await allow([redis.server], [...DOCUMENTED_COMMANDS, 'keys'], '*')
const client = createClient({ url: userUrl(redis.server) })
client.on('error', () => undefined)
await client.connect()
after(async () => {
  client.destroy()
  await redis.stop()
})

conformanceOverStore('Redis', overRedis({ runner: nodeRedisRunner(client), send: (...command) => client.sendCommand([...command]) }), {
  share: shortOrLong(0.002, 0.01),
  inShortRun: ['gcra', 'concurrency', 'all-of'],
  // Larger steps back are distinguished from a value of another clock, or taken for one, depending on the policy: see clock-steps.test.ts.
  furthestBackMs: 300,
})

equalLevels('Redis', () => redisStore(client, { prefix: 'equal' }), { options: { mode: 'exact' } })
