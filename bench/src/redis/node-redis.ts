import { requireRival } from '../rivals.js'
import type { Place } from './servers.js'

/** What is used of node-redis, one server or a cluster. */
export interface NodeRedis {
  get(key: string): Promise<string | null>
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  multi(): NodeRedisMulti
  /** Of a cluster: who holds which slot. */
  readonly slots?: readonly { readonly master: { readonly port: number } }[]
}

interface NodeRedisMulti {
  set(key: string, value: string, options?: { PX: number }): NodeRedisMulti
  pExpire(key: string, ms: number): NodeRedisMulti
  exec(): Promise<unknown[]>
}

/** A connection with no other user meanwhile. */
export interface NodeRedisConnection extends NodeRedis {
  watch(key: string): Promise<unknown>
  unwatch(): Promise<unknown>
}

export interface NodeRedisPool {
  execute<Value>(use: (connection: NodeRedisConnection) => Promise<Value>): Promise<Value>
}

interface Module {
  createClient(options: object): { connect(): Promise<NodeRedis & { scriptLoad(source: string): Promise<string>; close(): Promise<void> }> }
  createCluster(options: object): { connect(): Promise<NodeRedis> }
  createClientPool(client: object, pool: object): { connect(): Promise<NodeRedisPool> }
}

/** No caller waits in vain for a connection of the pool. */
const ACQUIRE_MS = 60_000

/** One connection to each primary, shared by all callers: the client puts commands of one turn into one write. */
export async function nodeRedis({ topology, ports }: Place): Promise<NodeRedis> {
  const { createClient, createCluster } = module()
  if (topology === 'standalone') return createClient(at(ports[0] as number)).connect()
  return createCluster({ rootNodes: ports.map(at) }).connect()
}

/** Connections of their own, `most` to one server. */
export async function nodeRedisPool(port: number, most: number): Promise<NodeRedisPool> {
  return module().createClientPool(at(port), { minimum: 1, maximum: most, acquireTimeout: ACQUIRE_MS }).connect()
}

/** Makes a script known to all primaries; answers its SHA-1. */
export async function loadScript({ ports }: Place, source: string): Promise<string> {
  let sha1 = ''
  for (const port of ports) {
    const client = await module().createClient(at(port)).connect()
    sha1 = await client.scriptLoad(source)
    await client.close()
  }
  return sha1
}

function module(): Module {
  return requireRival('@redis/client') as Module
}

function at(port: number): object {
  return { socket: { host: '127.0.0.1', port } }
}
