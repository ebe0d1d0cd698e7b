import type { FleetContender } from '../fleet-contender.js'
import { nodeRedis } from '../node-redis.js'
import type { Place } from '../place.js'
import { sluicegate } from '../sluicegate.js'

export async function leased(place: Place): Promise<FleetContender> {
  return sluicegate(await nodeRedis(place), 'leased')
}
