import { requireRival } from '../../rivals.js'
import { BURST, RATE_PER_S } from '../bucket.js'
import type { FleetContender } from '../fleet-contender.js'
import { ioredis } from '../ioredis.js'
import { nodeRedis } from '../node-redis.js'
import type { Place } from '../place.js'

interface Module {
  readonly RateLimiterRedis: new (options: object) => { consume(key: string): Promise<unknown> }
}

/** It runs its script by SHA on ioredis, and sends it in full each time on node-redis. */
export async function flexibleOnIoredis(place: Place): Promise<FleetContender> {
  return flexible({ storeClient: await ioredis(place) })
}

export async function flexibleOnNodeRedis(place: Place): Promise<FleetContender> {
  return flexible({ storeClient: await nodeRedis(place), useRedisPackage: true })
}

/** `await limiter.consume(key)`, which rejects when denied. It counts in windows: this one holds the burst, and the same rate in the long run. */
function flexible(client: object): FleetContender {
  const { RateLimiterRedis } = requireRival('rate-limiter-flexible') as Module
  const limiter = new RateLimiterRedis({ ...client, points: BURST, duration: BURST / RATE_PER_S })
  return { take: (key) => limiter.consume(key), passed: () => true, awaited: true }
}
