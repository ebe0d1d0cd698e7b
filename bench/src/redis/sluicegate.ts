import { createLimiter, tokenBucket } from 'sluicegate'
import { type RedisClient, redis } from 'sluicegate/redis'
import { BURST, passed, RATE_PER_S } from './bucket.js'
import type { FleetContender } from './fleet-contender.js'

/** A stall of the machine is no outage of the store. */
const TIMEOUT_MS = 10_000

/** The length of a lease, as it is by default. */
export const LEASE_MS = 100

/** `limiter.take(key)`, on a client of whichever kind. */
export function sluicegate(client: object, mode: 'exact' | 'leased'): FleetContender {
  const policy = tokenBucket({ limit: RATE_PER_S, window: '1s', burst: BURST, name: 'bench' })
  const limiter = createLimiter(policy, { store: redis(client as RedisClient), mode, timeout: TIMEOUT_MS })
  return {
    take: (key) => limiter.take(key),
    passed,
    awaited: mode === 'exact',
    withoutStore: () => limiter.stats().outageDecisions,
  }
}
