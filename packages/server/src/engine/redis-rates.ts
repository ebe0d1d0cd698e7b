import { createRedisRateTable, type RedisClient } from 'sluicegate/redis'
import type { SharedStorageConfig } from 'sluicegate-config/config.js'
import { type EngineRateTable, NO_TABLE } from './engine-limiter.js'

/** Keys whose rate comes with each call, in Redis. */
export function redisRates(client: RedisClient) {
  return ({ prefix, outage, timeoutMs }: SharedStorageConfig, hotKeys: number): EngineRateTable => {
    const table = createRedisRateTable({ client, outage, timeout: timeoutMs, hotKeys, ...(prefix !== undefined && { prefix }) })
    return {
      throttle: (key, rate, quantity) => table.throttle(key, rate, quantity),
      stats: () => NO_TABLE,
      snapshot: () => undefined,
      get outageDecisions() {
        return table.outageDecisions
      },
      hotKeys: (n) => table.hotKeys(n),
      close: () => table.close(),
    }
  }
}
