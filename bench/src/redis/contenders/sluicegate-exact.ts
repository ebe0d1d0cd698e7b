import type { FleetContender } from '../fleet-contender.js'
import { ioredis } from '../ioredis.js'
import { nodeRedis } from '../node-redis.js'
import type { Place } from '../place.js'
import { sluicegate } from '../sluicegate.js'

export async function exactOnNodeRedis(place: Place): Promise<FleetContender> {
  return sluicegate(await nodeRedis(place), 'exact')
}

export async function exactOnIoredis(place: Place): Promise<FleetContender> {
  return sluicegate(await ioredis(place), 'exact')
}
