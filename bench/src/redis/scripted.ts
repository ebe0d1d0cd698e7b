import { ALLOWED, type Answer, deniedFor, passed } from './bucket.js'
import type { FleetContender } from './fleet-contender.js'
import { loadScript, nodeRedis } from './node-redis.js'
import type { Place } from './place.js'

/** Decides by one call of a script, known to the servers beforehand. */
export async function scripted(place: Place, source: string, numbers: () => string[]): Promise<FleetContender> {
  const sha1 = await loadScript(place, source)
  const client = await nodeRedis(place)
  const take = async (key: string): Promise<Answer> => {
    const [isAllowed, untilFreeUs] = (await client.evalSha(sha1, { keys: [key], arguments: numbers() })) as [number, number]
    return isAllowed === 1 ? ALLOWED : deniedFor(untilFreeUs)
  }
  return { take, passed, awaited: true }
}
