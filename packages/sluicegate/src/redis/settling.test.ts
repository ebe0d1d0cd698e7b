import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RedisProcess, SlotMove, until } from 'sluicegate-testkit'
import { clusterOfFile, type ProxiedWay, proxiedServerOfFile, wayToSlot } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { redis } from './redis.js'
import { hashSlot } from './redis-keys.js'

// Whatever becomes of a client while calls are under way, each of them is answered.

const TIMEOUT_MS = 300
const AT_ONCE = 20
const policy = fixedWindow({ limit: 100_000, window: '1d', name: 'day' })

const { server, proxy: front } = await proxiedServerOfFile()
const cluster = await clusterOfFile({ proxied: true })

function limiterOf(client: never, prefix: string): SharedLimiter {
  return createLimiter(policy, { store: redis(client, { prefix }), mode: 'exact', outage: 'closed', timeout: TIMEOUT_MS })
}

const takes = (limiter: SharedLimiter) => Array.from({ length: AT_ONCE }, () => limiter.take('k'))

/** Each is answered, and so are those that are asked afterwards. */
async function allAnswered(limiter: SharedLimiter, taken: ReturnType<typeof takes>): Promise<void> {
  const decisions = [...(await Promise.all(taken)), ...(await Promise.all(takes(limiter)))]
  assert.ok(decisions.every(({ allowed, source }) => allowed === (source === 'store')))
}

function settles(kind: ClientKind, way: () => Promise<ProxiedWay>): void {
  test(`${kind.name}: calls whose client is closed before they are answered are answered`, async () => {
    const { roots, server, proxy } = await way()
    proxy.set({ kind: 'none' })
    const open = await kind.open(roots)
    const limiter = limiterOf(open.client as never, `closed ${kind.name}`)
    await until('the store decides', async () => (await limiter.take('k')).source === 'store')
    const calls = await server.callsOf('evalsha')
    proxy.set({ kind: 'half-open' })
    const taken = takes(limiter)
    await until('one has arrived', async () => (await server.callsOf('evalsha')) > calls)
    await open[Symbol.asyncDispose]()
    await allAnswered(limiter, taken)
    proxy.set({ kind: 'none' })
  })

  test(`${kind.name}: calls that are not written yet when their client is closed are answered`, async () => {
    const { roots, proxy } = await way()
    proxy.set({ kind: 'none' })
    const open = await kind.open(roots)
    const limiter = limiterOf(open.client as never, `unwritten ${kind.name}`)
    await until('the store decides', async () => (await limiter.take('k')).source === 'store')
    const taken = takes(limiter)
    const closed = open[Symbol.asyncDispose]()
    await allAnswered(limiter, taken)
    await closed
  })

  test(`${kind.name}: calls that come while the server cannot be reached, and whose client is closed then, are answered`, async () => {
    const { roots, proxy } = await way()
    proxy.set({ kind: 'none' })
    const open = await kind.open(roots)
    const limiter = limiterOf(open.client as never, `cut ${kind.name}`)
    await until('the store decides', async () => (await limiter.take('k')).source === 'store')
    proxy.set({ kind: 'cut' })
    const taken = takes(limiter)
    await new Promise((resolve) => setTimeout(resolve, 20))
    taken.push(...takes(limiter))
    const closed = open[Symbol.asyncDispose]()
    await allAnswered(limiter, taken)
    await closed
    proxy.set({ kind: 'none' })
  })
}

for (const kind of clientsForRun(SERVER_CLIENTS)) settles(kind, async () => ({ roots: [front], server, proxy: front }))
for (const kind of clientsForRun(CLUSTER_CLIENTS)) {
  settles(kind, () => wayToSlot(cluster, hashSlot('k')))

  test(`${kind.name}: calls that are sent elsewhere while their client is closed are answered`, async () => {
    const open = await kind.open(cluster.roots)
    const limiter = limiterOf(open.client as never, `moved ${kind.name}`)
    const holder = await cluster.primaryOf(hashSlot('k'))
    await until('the store decides', async () => (await limiter.take('k')).source === 'store')
    const [other] = (await cluster.primaries()).filter((node) => node !== holder)
    const move = await SlotMove.begin(cluster, hashSlot('k'), other as RedisProcess)
    // Half moved: some are to ask again, some are asked for elsewhere.
    const taken = takes(limiter)
    await move.moveKeys()
    taken.push(...takes(limiter))
    await new Promise((resolve) => setImmediate(resolve))
    const closed = open[Symbol.asyncDispose]()
    await allAnswered(limiter, taken)
    await closed
    await move.end()
  })
}
