import { hashSlot } from '../../../../packages/sluicegate/dist/redis/redis-keys.js'
import { ALLOWED, type Answer, afterTake, deniedFor, lifeMs, passed, untilFreeUs, wallUs } from '../bucket.js'
import type { FleetContender } from '../fleet-contender.js'
import { type NodeRedisConnection, type NodeRedisPool, nodeRedis, nodeRedisPool } from '../node-redis.js'
import type { Place } from '../place.js'

/** WATCH belongs to the connection, so callers do not share one. */
const MOST_CONNECTIONS = 64

/** WATCH and GET, then SET in MULTI/EXEC, again and again until no other write came between. */
export async function watchMultiExec(place: Place): Promise<FleetContender> {
  const pools = new Map<number, NodeRedisPool>()
  for (const port of place.ports) pools.set(port, await nodeRedisPool(port, MOST_CONNECTIONS))
  const { slots } = await nodeRedis(place)
  const portOf = (key: string): number | undefined => (place.topology === 'cluster' ? slots?.[hashSlot(key)]?.master.port : place.ports[0])
  const take = (key: string): Promise<Answer> => {
    const pool = pools.get(portOf(key) as number) as NodeRedisPool
    return pool.execute((connection) => takeAlone(connection, key))
  }
  return { take, passed, awaited: true }
}

async function takeAlone(connection: NodeRedisConnection, key: string): Promise<Answer> {
  for (;;) {
    const [, state] = await Promise.all([connection.watch(key), connection.get(key)])
    const arrivalUs = Number(state)
    const nowUs = wallUs()
    const nextUs = afterTake(arrivalUs, nowUs)
    if (nextUs === undefined) {
      await connection.unwatch()
      return deniedFor(untilFreeUs(arrivalUs, nowUs))
    }
    const swap = connection.multi().set(key, String(nextUs), { PX: lifeMs(nextUs, nowUs) })
    const isSwapped = await swap.exec().then(() => true, isOvertaken)
    if (isSwapped) return ALLOWED
  }
}

/** Another client wrote the key after it was watched: nothing was done. */
function isOvertaken(error: unknown): false {
  if (error instanceof Error && error.constructor.name === 'WatchError') return false
  throw error
}
