import { RedisSentinel } from 'sluicegate-testkit'
import { sentinelClients } from './clients.js'
import { type FailoverReport, failovers, isFollowing, type Replacing } from './failover.js'
import { subjectsOn } from './subject.js'

const KEYS = Array.from({ length: 3 }, (_, i) => `user:${i}`)

/** Kills the primary that sentinels watch, again and again, under load. */
export async function sentinelFailovers(count: number, progress?: (line: string) => void): Promise<FailoverReport> {
  await using watched = await RedisSentinel.start()
  const clients = await sentinelClients(watched.roots, watched.name)
  return await failovers(replacingIn(watched), { clients, subjects: subjectsOn(clients, KEYS), keys: KEYS, count, progress })
}

function replacingIn(watched: RedisSentinel): Replacing {
  return {
    servers: [...watched.servers, ...watched.sentinels],
    primary: () => watched.primary(),
    hasReplaced: async (killed) => (await watched.primary()) !== killed,
    isWhole: async (restarted) => (await isFollowing(restarted)) && (await watched.isReady()),
  }
}
