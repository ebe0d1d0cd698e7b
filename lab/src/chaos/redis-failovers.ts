import { createLimiter, type SharedOptions, tokenBucket } from 'sluicegate'
import { redis } from 'sluicegate/redis'
import { FleetLoad, Random, type RateSpec, RedisCluster, type RedisProcess, RedisSentinel } from 'sluicegate-testkit'
import { type FailoverReport, failovers, isFollowing, type Replacing } from './failover.js'
import { LOCAL_SHARE } from './fleet.js'
import type { Subject } from './recorded.js'
import { clusterClients, type OpenClient, sentinelClients, subjectsOn, TIMEOUT_MS } from './subject.js'

/** What one process of a fleet runs with. */
interface Version {
  readonly limit: number
  readonly burst: number
  readonly options?: Pick<SharedOptions, 'mode' | 'lease'>
}

/** Processes that share one budget with different settings. */
interface Mix {
  readonly name: string
  readonly versions: readonly Version[]
  /** Whether each process changes to the next version while a primary is gone. */
  readonly isRolling?: boolean
}

const WINDOW_MS = 5000
const BASE: Version = { limit: 200, burst: 200 }
const LARGER: Version = { limit: 200, burst: 210 }
const SLOWER: Version = { limit: 180, burst: 200 }

export const MIXES: readonly Mix[] = [
  { name: 'two bursts', versions: [BASE, LARGER] },
  { name: 'two limits', versions: [BASE, SLOWER] },
  { name: 'exact and leased', versions: [{ ...BASE, options: { mode: 'exact' } }, BASE] },
  { name: 'two horizons', versions: [BASE, { ...BASE, options: { lease: 200 } }] },
  { name: 'rolling change', versions: [LARGER, SLOWER], isRolling: true },
]

/** What all versions may pass together: the largest burst, and the highest rate. */
export function boundOf(versions: readonly Version[]): RateSpec {
  return {
    limit: Math.max(...versions.map(({ limit }) => limit)),
    windowMs: WINDOW_MS,
    burst: Math.max(...versions.map(({ burst }) => burst)),
  }
}

/** One subject for each mix: its versions run over the clients in turn, and each take goes to one of them at random. */
function mixedSubjectsOn(clients: readonly OpenClient[], keys: readonly string[], seed: number): Subject[] {
  return MIXES.map((mix, i) => mixedSubject(mix, clients, keys, new Random(seed + i)))
}

function mixedSubject(
  { name, versions, isRolling }: Mix,
  clients: readonly OpenClient[],
  keys: readonly string[],
  random: Random,
): Subject {
  const limiters = versions.map(({ options, ...version }, i) => {
    const { client } = clients[i % clients.length] as OpenClient
    return createLimiter(policyOf(version), {
      store: redis(client, { prefix: name }),
      share: LOCAL_SHARE,
      timeout: TIMEOUT_MS,
      ...options,
    })
  })
  let changes = 0
  const take = (key: string) => random.pick(limiters).take(key)
  return {
    name,
    bound: boundOf(versions),
    processes: limiters.length,
    limiter: { stats: () => limiters.map((limiter) => limiter.stats()) },
    load: new FleetLoad({ take }, { keys, callers: 4 * keys.length, restMs: 5 }),
    primaryGone: () => {
      if (!isRolling) return
      changes++
      for (const [i, limiter] of limiters.entries()) limiter.update(policyOf(versions[(i + changes) % versions.length] as Version))
    },
  }
}

function policyOf({ limit, burst }: Pick<Version, 'limit' | 'burst'>) {
  return tokenBucket({ limit, window: WINDOW_MS, burst, name: 'chaos' })
}

/** Three for each shard, about. */
const CLUSTER_KEYS = Array.from({ length: 9 }, (_, i) => `user:${i}`)

/** Kills the primaries of a 3+3 cluster one after another, under load. */
export async function clusterFailovers(count: number, progress?: (line: string) => void): Promise<FailoverReport> {
  await using cluster = await RedisCluster.start()
  const clients = await clusterClients(cluster.roots)
  return await failovers(replacingOf(cluster), {
    clients,
    subjects: subjectsOn(clients, CLUSTER_KEYS),
    keys: CLUSTER_KEYS,
    count,
    progress,
  })
}

/** The same under mixes of versions, modes and horizons, on few keys; one mix changes its policies in every failover. */
export async function mixedFailovers(count: number, seed: number, progress?: (line: string) => void): Promise<FailoverReport> {
  await using cluster = await RedisCluster.start()
  const clients = await clusterClients(cluster.roots)
  const keys = CLUSTER_KEYS.slice(0, 3)
  return await failovers(replacingOf(cluster), { clients, subjects: mixedSubjectsOn(clients, keys, seed), keys, count, progress })
}

function replacingOf(cluster: RedisCluster): Replacing {
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
