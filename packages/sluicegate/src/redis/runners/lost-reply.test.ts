import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { Redis } from 'ioredis'
import { everyNth, type FaultProxy, freePorts, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { clusterOfFile, type ProxiedWay, proxiedServerOfFile, wayToSlot } from 'sluicegate-testkit/redis/own-redis.js'
import {
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
