import { ALLOWED, type Answer, afterTake, deniedFor, lifeMs, passed, untilFreeUs, wallUs } from '../bucket.js'
import type { FleetContender } from '../fleet-contender.js'
import { nodeRedis } from '../node-redis.js'
import type { Place } from '../place.js'

/** GET, then SET and PEXPIRE in MULTI/EXEC: between the two round trips everybody else decides by the same old state. */
export async function multiExec(place: Place): Promise<FleetContender> {
  const client = await nodeRedis(place)
  const take = async (key: string): Promise<Answer> => {
    const arrivalUs = Number(await client.get(key))
    const nowUs = wallUs()
    const nextUs = afterTake(arrivalUs, nowUs)
    if (nextUs === undefined) return deniedFor(untilFreeUs(arrivalUs, nowUs))
    await client.multi().set(key, String(nextUs)).pExpire(key, lifeMs(nextUs, nowUs)).exec()
    return ALLOWED
  }
  return { take, passed, awaited: true }
}
