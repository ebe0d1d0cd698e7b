import { RedisCluster, type RedisProcess } from 'sluicegate-testkit'
import { clusterClients } from './clients.js'
import { type FailoverReport, failovers, isFollowing, type Replacing } from './failover.js'
import { mixedSubjectsOn } from './mix.js'
import { subjectsOn } from './subject.js'

/** Three for each shard, about. */
const KEYS = Array.from({ length: 9 }, (_, i) => `user:${i}`)

/** Kills the primaries of a 3+3 cluster one after another, under load. */
export async function clusterFailovers(count: number, progress?: (line: string) => void): Promise<FailoverReport> {
  await using cluster = await RedisCluster.start()
  const clients = await clusterClients(cluster.roots)
  return await failovers(replacingIn(cluster), { clients, subjects: subjectsOn(clients, KEYS), keys: KEYS, count, progress })
}

/** The same under mixes of versions, modes and horizons, on few keys; one mix changes its policies in every failover. */
export async function mixedFailovers(count: number, seed: number, progress?: (line: string) => void): Promise<FailoverReport> {
  await using cluster = await RedisCluster.start()
  const clients = await clusterClients(cluster.roots)
  const keys = KEYS.slice(0, 3)
  return await failovers(replacingIn(cluster), { clients, subjects: mixedSubjectsOn(clients, keys, seed), keys, count, progress })
}

function replacingIn(cluster: RedisCluster): Replacing {
  return {
    servers: cluster.nodes,
    primary: async (round) => {
      const shards = (await cluster.primaries()).sort((a, b) => a.port - b.port)
      return shards[round % shards.length] as RedisProcess
    },
    hasReplaced: async (killed) => {
      const primaries = await cluster.primaries()
      return primaries.length === 3 && !primaries.includes(killed)
    },
    isWhole: async (restarted) => {
      await cluster.ready()
      return isFollowing(restarted)
    },
  }
}
