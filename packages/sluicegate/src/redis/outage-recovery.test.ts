import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { everyNth, type FaultProxy, longTest, until } from 'sluicegate-testkit'
import { clusterOfFile, proxiedServerOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, type ClientKind, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import type { ChannelMessages } from '../decision/diagnostics.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { tokenBucket } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { redis } from './redis.js'
import { hashSlot } from './redis-keys.js'

// What was used without the store is charged there afterwards. Nothing of these budgets comes back while a test runs, so that totals are exact.

const BURST = 1000
const SHARE = 0.2
const bucket = (name: string, burst = BURST): Policy => tokenBucket({ limit: 1, window: '1d', burst, name })
const KINDS = clientsForRun(SERVER_CLIENTS.filter(({ name, library }) => name === library))
const ON_CLUSTER = CLUSTER_CLIENTS.filter(({ name, library }) => name === `${library} on a cluster`)
/** Only what is cut off is to fail, on a busy machine too. */
const TIMEOUT_MS = 2_000
/** For what is cut off again and again. */
const SHORT_MS = 300

const { proxy } = await proxiedServerOfFile()
const cluster = await clusterOfFile({ proxied: true })

function keys(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `user:${i}`)
}

/** Asks until it is an outage, and once more for each key; answers how many passed by key. */
async function takenOut(limiter: SharedLimiter, names: readonly string[]): Promise<number[]> {
  // No more calls are sent: those queued in a client may be charged when its connection is back.
  await until('it is an outage', async () => (await limiter.peek('another')).source === 'outage' && limiter.stats().outages > 0)
  return Promise.all(
    names.map(async (key) => {
      const decisions = await Promise.all([limiter.take(key, 2), limiter.take(key), limiter.take(key)])
      return decisions.reduce((sum, { allowed, source }, i) => sum + (allowed && source === 'outage' ? (i === 0 ? 2 : 1) : 0), 0)
    }),
  )
}

/** What is left of each key once the store knows everything. */
async function leftOf(limiter: SharedLimiter, names: readonly string[]): Promise<number[]> {
  await until('the store is back', async () => (await limiter.peek('another')).source === 'store')
  await until('all is accounted for', async () => {
    await limiter.peek('another')
    return limiter.stats().accountedTokens === limiter.stats().outageTokens
  })
  const standing: Decision[] = await Promise.all(names.map((key) => limiter.peek(key)))
  return standing.map(({ remaining }) => remaining)
}

for (const [i, [kind, outage]] of KINDS.flatMap((kind) =>
  (['local', 'open'] as const).map((outage) => [kind, outage] as const),
).entries()) {
  everyNth(i, 6)(`${kind.name}: after an outage the store knows to the token what was used without it, ${outage}`, async () => {
    await using open = await kind.open([proxy])
    const limiter = createLimiter(bucket(`exact ${outage}`), {
      store: redis(open.client, { prefix: kind.name }),
      outage,
      share: SHARE,
      timeout: TIMEOUT_MS,
    })
    const names = keys(100)
    assert.deepEqual(
      (await Promise.all(names.map((key) => limiter.take(key, 10)))).map(({ source }) => source),
      names.map(() => 'store'),
    )
    proxy.set({ kind: 'cut' })
    const used = await takenOut(limiter, names)
    proxy.set({ kind: 'none' })
    assert.deepEqual(
      used,
      names.map(() => 4),
    )
    assert.deepEqual(
      await leftOf(limiter, names),
      names.map(() => BURST - 10 - 4),
    )
  })
}

for (const kind of KINDS.slice(0, 2)) {
  longTest(`${kind.name}: of allOf each policy is charged what was used of it`, async () => {
    await using open = await kind.open([proxy])
    const policy = allOf([bucket('one'), bucket('two', 2 * BURST)])
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), share: SHARE, timeout: TIMEOUT_MS })
    await limiter.take(['a', 'tenant'])
    proxy.set({ kind: 'cut' })
    await until('it is an outage', async () => (await limiter.peek(['x', 'y'])).source === 'outage')
    for (const user of ['a', 'a', 'b', 'c']) assert.equal((await limiter.take([user, 'tenant'])).allowed, true)
    proxy.set({ kind: 'none' })
    await until('all is accounted for', async () => {
      await limiter.peek(['x', 'y'])
      return limiter.stats().accountedTokens >= 4
    })
    const leftOfParts = async (key: string): Promise<(number | undefined)[]> =>
      ((await limiter.peek([key, 'tenant'])).parts ?? []).map(({ remaining }) => remaining)
    assert.deepEqual(await leftOfParts('a'), [BURST - 3, 2 * BURST - 5])
    assert.deepEqual(await leftOfParts('b'), [BURST - 1, 2 * BURST - 5])
  })

  longTest(`${kind.name}: a connection that comes and goes under load loses no more than what was on its way`, async () => {
    await using open = await kind.open([proxy])
    const limiter = createLimiter(bucket('flaps'), {
      store: redis(open.client, { prefix: kind.name }),
      share: SHARE,
      timeout: SHORT_MS,
    })
    const name = 'k'
    let stored = 0
    for (let flap = 0; flap < 6; flap++) {
      proxy.set({ kind: flap % 2 === 0 ? 'cut' : 'half-open' })
      for (let i = 0; i < 10; i++) if (counts(await limiter.take(name))) stored++
      await until('it is an outage', async () => (await limiter.peek('another')).source === 'outage')
      for (let i = 0; i < 10; i++) if (counts(await limiter.take(name))) stored++
      proxy.set({ kind: 'none' })
      await until('the store is back', async () => (await limiter.peek('another')).source === 'store')
      for (let i = 0; i < 10; i++) if (counts(await limiter.take(name))) stored++
    }
    await until('the store is back', async () => (await limiter.peek('another')).source === 'store')
    const spent = BURST - (await limiter.peek(name)).remaining
    const { outageTokens, accountedTokens, storeFailures } = limiter.stats()
    assert.ok(accountedTokens > 0 && spent >= stored + accountedTokens, `${spent} charged for ${stored} + ${accountedTokens}`)
    // A call that failed may have charged a token, and no more than one; or have charged the outage account.
    assert.ok(spent <= stored + outageTokens + storeFailures, `${spent} charged for ${stored} + ${outageTokens}, ${storeFailures} failed`)
    assert.ok(outageTokens <= SHARE * BURST)
  })

  test(`${kind.name}: events report the failed server and its recovery`, async () => {
    await using open = await kind.open([proxy])
    const limiter = createLimiter(bucket('reported'), { store: redis(open.client, { prefix: kind.name }), timeout: TIMEOUT_MS })
    const heard: ChannelMessages['sluicegate:outage'][] = []
    const listen = (event: unknown): void => void heard.push(event as ChannelMessages['sluicegate:outage'])
    subscribe('sluicegate:outage', listen)
    await limiter.take('k')
    proxy.set({ kind: 'cut' })
    await takenOut(limiter, ['k'])
    await until('it is given up', async () => {
      await limiter.take('k')
      return limiter.stats().outages > 0
    })
    assert.equal(limiter.stats().openCircuits, 1)
    proxy.set({ kind: 'none' })
    await until('the store is back', async () => (await limiter.peek('another')).source === 'store')
    assert.equal(limiter.stats().openCircuits, 0)
    unsubscribe('sluicegate:outage', listen)
    assert.deepEqual(heard, [
      { policy: 'reported', server: undefined, isOut: true },
      { policy: 'reported', server: undefined, isOut: false },
    ])
  })
}

for (const kind of clientsForRun(ON_CLUSTER)) {
  test(`${kind.name}: a failed shard does not affect the others, and is charged afterwards for its keys`, async () => {
    await using open = await kind.open(cluster.roots)
    await oneShardOut(
      kind,
      createLimiter(bucket('shards'), { store: redis(open.client, { prefix: kind.name }), share: SHARE, timeout: TIMEOUT_MS }),
    )
  })
}

async function oneShardOut({ name }: ClientKind, limiter: SharedLimiter): Promise<void> {
  const names = keys(60)
  await Promise.all(names.map((key) => limiter.take(key)))
  const node = await cluster.primaryOf(hashSlot('user:0'))
  const holders = await Promise.all(names.map((key) => cluster.primaryOf(hashSlot(key))))
  const lost = names.filter((_, i) => holders[i] === node)
  const others = names.filter((_, i) => holders[i] !== node)
  const front = cluster.proxies.get(node) as FaultProxy
  front.set({ kind: 'black-hole' })
  try {
    await until('its keys are decided without it', async () => isAll(await takesOf(limiter, lost), 'outage'))
    for (let i = 0; i < 20; i++) assert.ok(isAll(await takesOf(limiter, others), 'store'), `${name}: the others are asked as ever`)
  } finally {
    front.set({ kind: 'none' })
  }
  await until('it is back', async () => isAll(await takesOf(limiter, lost), 'store'))
  await until('all is accounted for', async () => {
    await takesOf(limiter, lost.slice(0, 1))
    const { outageTokens, accountedTokens } = limiter.stats()
    return outageTokens > 0 && accountedTokens === outageTokens
  })
}

async function takesOf(limiter: SharedLimiter, names: readonly string[]): Promise<Decision[]> {
  return Promise.all(names.map((key) => limiter.take(key)))
}

function isAll(decisions: readonly Decision[], source: Decision['source']): boolean {
  return decisions.length > 0 && decisions.every((decision) => decision.source === source)
}

/** Whether the store has charged it. */
function counts({ allowed, source }: Decision): boolean {
  return allowed && source === 'store'
}
