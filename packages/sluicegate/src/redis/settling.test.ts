import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type RedisProcess, SlotMove, until } from 'sluicegate-testkit'
import { clusterOfFile, type ProxiedWay, proxiedServerOfFile, wayToSlot } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, tokenBucket } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { redis } from './redis.js'
import { hashSlot } from './redis-keys.js'
import type { RedisClient } from './runner-for.js'

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

describe('given back in order', async () => {
  // A booking with later ones after it returns nothing: unwanted bookings must be returned newest first.

  const BURST = 50
  /** Nothing flows back by itself while a test runs. */
  const POLICY = tokenBucket({ limit: 1, window: '10d', burst: BURST, name: 'p' })
  /** With valkey-glide not all comes back yet: see docs/outages.md. */
  const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name, library }) => name === library && library !== 'valkey-glide'))
  const NO_HASTE = 60_000
  const WAITS = 300

  const { server, proxy } = await proxiedServerOfFile()

  let limiters = 0
  function pair(client: RedisClient, policy: Policy, options: Partial<SharedOptions> = {}): SharedLimiter[] {
    const all = { store: redis(client, { prefix: `back ${++limiters}` }), outage: 'closed', ...options } as const
    return [createLimiter(policy, { timeout: NO_HASTE, ...all }), createLimiter(policy, { ...all, timeout: NO_HASTE })]
  }

  /** But for what flowed back by itself of what could have been spent at once, which does not come back twice. */
  async function isAsNew(limiter: SharedLimiter): Promise<boolean> {
    const { source, remaining } = await limiter.peek('k')
    return source === 'store' && remaining >= BURST - 1
  }

  for (const kind of KINDS) {
    for (const mode of ['exact', 'leased'] as const) {
      // A rate has to give a token a lease, else it runs exact: at this one, with the longest, one or two flow back while the test runs.
      const policy = mode === 'exact' ? POLICY : tokenBucket({ limit: 1, window: '20s', burst: 100, name: 'p' })
      const lease = '10s'
      for (const end of ['close', 'abort'] as const) {
        test(`${kind.name}, ${mode}: after ${end} of ${WAITS} waits, sleeping or in flight, the key is as if there had been no waits`, async () => {
          await using open = await kind.open([proxy])
          const [limiter, other] = pair(open.client, policy, { mode, lease })
          assert.ok(limiter && other)
          const controller = new AbortController()
          const waits: Promise<unknown>[] = []
          const wait = (many: number): void => {
            for (let i = 0; i < many; i++) waits.push(limiter.wait('k', { signal: controller.signal, cost: 2 }).catch(() => undefined))
          }
          wait(WAITS / 2)
          await until('they sleep', async () => (await other.peek('k')).retryAfterMs > 1000)
          // These have not been answered when all give up.
          wait(WAITS / 2)
          if (end === 'close') limiter.close()
          else controller.abort(new Error('enough'))
          await Promise.all(waits)
          // Those who did not have to wait keep what they took, the whole burst.
          const fullMs = (policy.windowMs * policy.burst) / policy.limit
          const isBack = async (): Promise<boolean> => (await other.peek('k')).resetAfterMs <= fullMs
          await until('all came back', isBack)
          other.close()
        })
      }
    }

    test(`${kind.name}: bookings answered after the timeout of their callers are all returned`, async () => {
      await using open = await kind.open([server])
      const [limiter, other] = pair(open.client, POLICY, { mode: 'exact', timeout: 100 })
      assert.ok(limiter && other)
      const hasty = createLimiter(POLICY, { store: redis(open.client, { prefix: `back ${limiters}` }), mode: 'exact', outage: 'closed' })
      await other.peek('k')
      server.pause()
      const waits = Array.from({ length: 250 }, () => hasty.wait('k', { cost: 1 }))
      const answers = await Promise.all(waits)
      server.resume()
      assert.deepEqual(new Set(answers.map(({ source }) => source)), new Set(['outage']))
      await until('all came back', () => isAsNew(other))
      for (const each of [hasty, limiter, other]) each.close()
    })
  }

  for (const policy of [
    concurrency({ limit: BURST, ttl: '1h', name: 'places' }),
    fixedWindow({ limit: BURST, window: '1h', name: 'window' }),
  ]) {
    test(`${policy.algorithm}: cancelled waits leave no charge`, async () => {
      await using open = await (KINDS[0] as (typeof KINDS)[0]).open([proxy])
      const [limiter, other] = pair(open.client, policy, { mode: 'exact' })
      assert.ok(limiter && other)
      await other.peek('k')
      proxy.set({ kind: 'latency', delayMs: 50 })
      const controller = new AbortController()
      const waits = Array.from({ length: BURST }, () => limiter.wait('k', { signal: controller.signal }).catch(() => undefined))
      await until('they are on their way', () => limiter.shards().calls === BURST)
      controller.abort(new Error('enough'))
      await Promise.all(waits)
      proxy.set({ kind: 'none' })
      await until('all came back', async () => (await other.peek('k', BURST)).allowed)
      for (const each of [limiter, other]) each.close()
    })
  }
})
