import { createCluster, createSentinel } from '@redis/client'
import { Cluster, Redis } from 'ioredis'
import type { RedisClient } from 'sluicegate/redis'
import { watchdog } from './watchdog.js'

/** Where a client may begin to ask. */
export interface Root {
  readonly host: string
  readonly port: number
}

/** A connected client. */
export interface OpenClient {
  readonly name: string
  readonly client: RedisClient
  close(): unknown
}

/** node-redis waits for 5 s by default before it looks for the new primary. */
const LOOK_AGAIN_MS = 300

/** One client of each kind that tells which server has a slot, on a cluster. */
export async function clusterClients(roots: readonly Root[]): Promise<OpenClient[]> {
  const nodeRedis = createCluster({
    rootNodes: roots.map(({ host, port }) => ({ url: `redis://${host}:${port}` })),
    topologyRefreshOnReconnectionAttemptStrategy: LOOK_AGAIN_MS,
  })
  return opened(nodeRedis, () => new Cluster(roots.map(({ host, port }) => ({ host, port }))))
}

/** The same, of those who ask sentinels for the primary called so. */
export async function sentinelClients(roots: readonly Root[], name: string): Promise<OpenClient[]> {
  const addresses = roots.map(({ host, port }) => ({ host, port }))
  const nodeRedis = createSentinel({ name, sentinelRootNodes: addresses })
  return opened(nodeRedis, () => new Redis({ name, sentinels: addresses }))
}

type NodeRedis = RedisClient & { on(event: 'error', listener: () => void): unknown; connect(): Promise<unknown>; destroy(): unknown }

async function opened(nodeRedis: NodeRedis, other: () => Redis | Cluster): Promise<OpenClient[]> {
  nodeRedis.on('error', () => undefined)
  await watchdog(async () => 'it has not said why')('node-redis connects', nodeRedis.connect())
  const ioredis = other()
  ioredis.on('error', () => undefined)
  const ready = new Promise<void>((resolve) => ioredis.once('ready', () => resolve()))
  await watchdog(async () => `it is ${ioredis.status}`)('ioredis connects', ready)
  return [
    { name: 'node-redis', client: nodeRedis, close: () => nodeRedis.destroy() },
    { name: 'ioredis', client: ioredis, close: () => ioredis.disconnect() },
  ]
}
