import { requireRival } from '../rivals.js'
import type { Place } from './servers.js'

interface Module {
  readonly Redis: new (options: object) => object
  readonly Cluster: new (nodes: readonly object[], options: object) => object
}

/** One connection to each primary, shared by all callers; with its option for writing commands of one turn together. */
export async function ioredis({ topology, ports }: Place): Promise<object> {
  const { Redis, Cluster } = requireRival('ioredis') as Module
  const [first, ...others] = ports.map((port) => ({ host: '127.0.0.1', port }))
  const options = { enableAutoPipelining: true }
  return topology === 'standalone' ? new Redis({ ...first, ...options }) : new Cluster([first as object, ...others], options)
}
