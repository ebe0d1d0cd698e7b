import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { clusterOfFile, type ProxiedWay, proxiedServerOfFile, wayToSlot } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, type ClientKind, clientsForRun, NO_HASTE, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../../create-limiter.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { redis } from '../redis.js'
import { hashSlot } from '../redis-keys.js'

const { server, proxy: front } = await proxiedServerOfFile()
const cluster = await clusterOfFile({ proxied: true })

const TAKES = 100
/** Those of a first reply that still came, or of a socket that was full. */
const MOST_WRITES = 5
const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })

interface Writing {
  readonly remotePort?: number
  _write(...args: unknown[]): void
  _writev(...args: unknown[]): void
}

/** How often this process hands something to the system for a port, from now until it is asked. */
function writesTo(port: number): () => number {
  const sockets = Socket.prototype as unknown as Writing
  const { _write, _writev } = sockets
  let writes = 0
  const counted = (write: Writing['_write']): Writing['_write'] =>
    function (this: Writing, ...args) {
      if (this.remotePort === port) writes++
      write.apply(this, args)
    }
  sockets._write = counted(_write)
  sockets._writev = counted(_writev)
  return () => {
    Object.assign(sockets, { _write, _writev })
    return writes
  }
}

function pipelines(kind: ClientKind, way: () => Promise<ProxiedWay>): void {
  test(`${kind.name}: ${TAKES} takes of one turn are on their way before the first is answered, in few writes`, async () => {
    const { roots, server, proxy } = await way()
    proxy.set({ kind: 'none' })
    await using open = await kind.open(roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
    await limiter.take('k')
    const calls = await server.callsOf('evalsha')
    proxy.set({ kind: 'half-open' })
    const writes = writesTo(proxy.port)
    const taken = Promise.all(Array.from({ length: TAKES }, () => limiter.take('k')))
    await until('all have arrived', async () => (await server.callsOf('evalsha')) === calls + TAKES)
    const count = writes()
    // The core of valkey-glide writes for itself, outside of Node.js.
    assert.ok(kind.library === 'valkey-glide' ? count === 0 : count >= 1 && count <= MOST_WRITES, `${count} writes`)
    proxy.set({ kind: 'none' })
    await taken
  })
}

// A pool gives each call a connection of its own; ioredis 4 tells a command no socket by which to gather what is written.
const gathers = ({ name }: ClientKind): boolean => !name.includes('pool') && !name.startsWith('ioredis 4')
for (const kind of clientsForRun(SERVER_CLIENTS.filter(gathers))) {
  pipelines(kind, async () => ({ roots: [front], server, proxy: front }))
}
for (const kind of clientsForRun(CLUSTER_CLIENTS.filter(gathers))) {
  pipelines(kind, () => wayToSlot(cluster, hashSlot('k')))
}
