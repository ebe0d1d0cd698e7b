import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { GlideClient, GlideClusterClient } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import { everyNth, type FaultProxy, freePorts, IS_LONG_RUN, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { clusterOfFile, type ProxiedWay, proxiedServerOfFile, serverOfFile, wayToSlot } from 'sluicegate-testkit/redis/own-redis.js'
import {
  type Address,
  CLUSTER_CLIENTS,
  type ClientKind,
  clientsForRun,
  NO_HASTE,
  SERVER_CLIENTS,
  sentinelClients,
} from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../../create-limiter.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { redis } from '../redis.js'
import { hashSlot } from '../redis-keys.js'

const { server, proxy: front } = await proxiedServerOfFile()
const cluster = await clusterOfFile({ proxied: true })
const folder = mkdtempSync(join(tmpdir(), 'sluicegate-lost-reply-'))
const file = join(folder, 'sentinel.conf')
writeFileSync(file, `sentinel monitor front ${front.host} ${front.port} 1\nsentinel down-after-milliseconds front 600000\n`)
const [port = 0] = await freePorts(1)
/** Sends its clients to the proxy. */
const sentinel = await RedisProcess.start({ port, file, args: ['--sentinel'] })
after(async () => {
  await sentinel.stop()
  rmSync(folder, { recursive: true })
})

const LIMIT = 1000
const policy = fixedWindow({ limit: LIMIT, window: '1d', name: 'day' })
const AT_ONCE = 5
const ONE_BY_ONE: ReadonlySet<string> = new Set(['a pool of node-redis', 'node-redis with sentinels'])

/** What becomes of a connection whose answers are lost. */
const ENDS = {
  'is reset': async (proxy: FaultProxy) => proxy.set({ kind: 'none' }),
  'is cut for a while': async (proxy: FaultProxy, taken: Promise<unknown>) => {
    const { connections } = proxy
    let isGivenUp = false
    taken.finally(() => {
      isGivenUp = true
    })
    proxy.set({ kind: 'cut' })
    // A cluster's client may leave it at that until the server is asked for the next time.
    await until('the client tries to come back, or gives up', () => isGivenUp || proxy.connections > connections)
    proxy.set({ kind: 'none' })
  },
}

let kinds = 0

function chargesOnce(kind: ClientKind, key: string, way: () => Promise<ProxiedWay>): void {
  // A pool has a connection or two at first, and none can be added then; with sentinels the client's pool is one connection.
  const arriving = ONE_BY_ONE.has(kind.name) ? 1 : AT_ONCE
  // In a short run each kind has one of them, by turns.
  const turn = kinds++
  for (const [i, [how, end]] of Object.entries(ENDS).entries()) {
    everyNth(turn + i, 2)(`a call of ${kind.name} whose reply is lost when the connection ${how} is one charge, never two`, async () => {
      const { roots, server, proxy } = await way()
      proxy.set({ kind: 'none' })
      await using open = await kind.open(roots)
      const limiter = createLimiter(policy, { store: redis(open.client, { prefix: `${kind.name} ${how}` }), ...NO_HASTE })
      assert.equal((await limiter.take(key)).remaining, LIMIT - 1)
      const calls = await server.callsOf('evalsha')
      proxy.set({ kind: 'half-open' })
      const taken = Promise.all(Array.from({ length: AT_ONCE }, () => limiter.take(key)))
      await until('the calls have arrived', async () => (await server.callsOf('evalsha')) >= calls + arriving)
      await end(proxy, taken)
      const lost = (await taken).filter(({ allowed, source }) => source === 'outage' && !allowed)
      assert.ok(lost.length >= arriving)
      // Behind whatever else the client sends. It changes nothing, and so may fail until the client is back.
      let standing = await limiter.peek(key)
      await until('the server answers', async () => {
        standing = await limiter.peek(key)
        return standing.source === 'store'
      })
      const spent = LIMIT - standing.remaining
      assert.ok(spent >= 1 + arriving && spent <= 1 + AT_ONCE, `${spent} charged for 1 call that was answered and ${AT_ONCE} that were not`)
    })
  }
}
for (const kind of clientsForRun(SERVER_CLIENTS)) chargesOnce(kind, 'k', async () => ({ roots: [front], server, proxy: front }))
for (const kind of clientsForRun(sentinelClients('front')))
  chargesOnce(kind, 'k', async () => ({ roots: [sentinel], server, proxy: front }))
for (const kind of clientsForRun(CLUSTER_CLIENTS)) {
  chargesOnce(kind, 'k', () => wayToSlot(cluster, hashSlot('k')))
}

longTest('an ioredis call without resends, whose failure the client never reports, times out and is charged once', async () => {
  front.set({ kind: 'none' })
  const client = new Redis({ host: front.host, port: front.port, autoResendUnfulfilledCommands: false })
  client.on('error', () => undefined)
  const limiter = createLimiter(policy, {
    store: redis(client, { prefix: 'unreported' }),
    mode: 'exact',
    outage: 'closed',
    timeout: 2000,
  })
  await limiter.take('k')
  const calls = await server.callsOf('evalsha')
  front.set({ kind: 'half-open' })
  const taken = limiter.take('k')
  await until('the call has arrived', async () => (await server.callsOf('evalsha')) > calls)
  front.set({ kind: 'none' })
  assert.deepEqual([(await taken).allowed, (await taken).source], [false, 'outage'])
  let standing = await limiter.peek('k')
  await until('the server answers', async () => {
    standing = await limiter.peek('k')
    return standing.source === 'store'
  })
  assert.equal(standing.remaining, LIMIT - 2)
  client.disconnect()
})

describe('given up commands', async () => {
  // Commands queued in a client for a lost server, for longer than their callers wait. A server of these tests forgets everything
  // when it ends: whatever it knows of a key afterwards was written afterwards.

  const server = await serverOfFile()
  const cluster = await clusterOfFile()

  const LIMIT = 1000
  const TIMEOUT_MS = 200
  const AT_ONCE = 20
  const policy = fixedWindow({ limit: LIMIT, window: '1d', name: 'day' })

  interface Home {
    readonly roots: readonly Address[]
    readonly holder: RedisProcess
    readonly ready: () => Promise<void>
  }

  function chargesNothingLate(kind: ClientKind, home: (slot: number) => Promise<Home>): void {
    test(`${kind.name}: what waited for a server that was gone, and was given up, is not charged when it is back`, async () => {
      const prefix = `given up ${kind.name}`
      const { roots, holder, ready } = await home(hashSlot('k'))
      await using open = await kind.open(roots)
      const options = { store: redis(open.client, { prefix }), mode: 'exact', outage: 'closed', timeout: TIMEOUT_MS } as const
      // Each gives up for itself: one whose breaker is open would send nothing.
      const limiters = Array.from({ length: 3 }, () => createLimiter(policy, options))
      const [first = limiters[0] as never] = limiters
      await until('the store decides', async () => (await first.take('k')).source === 'store')
      await holder.kill()
      for (const limiter of limiters) {
        const takes = await Promise.all(Array.from({ length: AT_ONCE }, () => limiter.take('k')))
        assert.ok(takes.every(({ allowed, source }) => !allowed && source === 'outage'))
      }
      await holder.start()
      await ready()
      let standing = await first.peek('k')
      await until('the store decides again', async () => {
        standing = await first.peek('k')
        return standing.source === 'store'
      })
      assert.equal(standing.remaining, LIMIT)
      // Behind that answer nothing more of it comes.
      assert.equal((await first.take('k')).remaining, LIMIT - 1)
    })
  }

  /** It can signal nothing, and drops what waits when its own time is over: that is to be as short. */
  const HASTY_GLIDE = {
    name: 'valkey-glide with a request time-out as short',
    library: 'valkey-glide',
    open: async (addresses) => glideIn(await GlideClient.createClient({ addresses: bare(addresses), requestTimeout: TIMEOUT_MS })),
  } satisfies ClientKind
  const HASTY_GLIDE_ON_CLUSTER = {
    name: 'valkey-glide with a request time-out as short, on a cluster',
    library: 'valkey-glide',
    open: async (addresses) => glideIn(await GlideClusterClient.createClient({ addresses: bare(addresses), requestTimeout: TIMEOUT_MS })),
  } satisfies ClientKind

  function glideIn(client: GlideClient | GlideClusterClient) {
    return { client, [Symbol.asyncDispose]: async () => client.close() }
  }

  function bare(addresses: readonly Address[]): Address[] {
    return addresses.map(({ host, port }) => ({ host, port }))
  }

  const recalls = ({ library }: ClientKind): boolean => library !== 'valkey-glide'

  for (const kind of clientsForRun([...SERVER_CLIENTS.filter(recalls), HASTY_GLIDE])) {
    chargesNothingLate(kind, async () => ({ roots: [server], holder: server, ready: async () => undefined }))
  }
  for (const kind of IS_LONG_RUN ? [...CLUSTER_CLIENTS.filter(recalls), HASTY_GLIDE_ON_CLUSTER] : []) {
    chargesNothingLate(kind, async (slot) => ({
      roots: cluster.roots,
      holder: await cluster.primaryOf(slot),
      ready: () => cluster.ready(),
    }))
  }
})
