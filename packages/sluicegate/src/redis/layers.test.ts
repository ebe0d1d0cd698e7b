import { after, before } from 'node:test'
import { RedisProcess } from 'sluicegate-testkit'
import { layerSuite } from '../testing/layer-suite.js'
import { type OpenClient, SERVER_CLIENTS } from '../testing/redis-clients.js'
import { createRedisLimiter } from './create-redis-limiter.js'

// Both clients that most fleets have; the others run the same scripts by the same port.
for (const kind of SERVER_CLIENTS.filter(({ name }) => name === 'node-redis' || name === 'ioredis')) {
  let server: RedisProcess
  let open: OpenClient
  before(async () => {
    server = await RedisProcess.start()
    open = await kind.open([server])
  })
  after(async () => {
    await open[Symbol.asyncDispose]()
    await server.stop()
  })
  let limiters = 0
  for (const mode of ['exact', 'leased'] as const) {
    layerSuite({
      name: `Redis, ${mode}, ${kind.name}`,
      make: (policy, options) =>
        createRedisLimiter(policy, {
          client: open.client,
          prefix: `limiter ${++limiters}`,
          // Of permits there are no leases.
          ...(policy.algorithm !== 'concurrency' && { mode }),
          outage: 'closed',
          timeoutMs: 60_000,
          ...options,
        }),
    })
  }
}
