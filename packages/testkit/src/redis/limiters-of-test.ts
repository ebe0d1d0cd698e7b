import type { TestContext } from 'node:test'
import { createClient } from '@redis/client'
import type { Policy } from '../../../sluicegate/dist/index.js'
import { createRedisLimiter, type FleetLimiter, type RedisLimiterOptions } from '../../../sluicegate/dist/redis/index.js'
import { RedisProcess } from '../servers/redis-process.js'

/** Limiters over one server, which are closed, with the server, when the test is over. */
export interface LimitersOfTest {
  readonly server: RedisProcess
  limiter(policy: Policy, options?: Partial<RedisLimiterOptions>): FleetLimiter
}

/** @param disableOfflineQueue whether a call fails while the client has no connection. */
export async function limitersOfTest(t: TestContext, disableOfflineQueue = false): Promise<LimitersOfTest> {
  const server = await RedisProcess.start()
  const client = createClient({ url: server.url, disableOfflineQueue })
  client.on('error', () => undefined)
  await client.connect()
  const limiters: FleetLimiter[] = []
  t.after(async () => {
    for (const limiter of limiters) limiter.close()
    client.destroy()
    await server.stop()
  })
  return {
    server,
    limiter(policy, options = {}) {
      const limiter = createRedisLimiter(policy, { client, timeoutMs: 30_000, ...options })
      limiters.push(limiter)
      return limiter
    },
  }
}
