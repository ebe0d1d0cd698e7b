import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { everyNth, longTest, until } from 'sluicegate-testkit'
import { clusterOfFile, serverOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, clientsForRun, NO_HASTE, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import { concurrency, type Decision, type SharedLimiter } from '../index.js'
import { allOf } from '../policy/all-of.js'
import { fixedWindow, tokenBucket } from '../policy/single-policy.js'
import { redis } from './redis.js'
import { hashSlot } from './redis-keys.js'

const server = await serverOfFile()
const cluster = await clusterOfFile()

const policy = allOf([tokenBucket({ limit: 10, window: '1m', name: 'user' }), fixedWindow({ limit: 100, window: '1d', name: 'tenant' })])
const KEYS = ['user:1', 'tenant:1'] as const

const isCrossSlot = (error: unknown): boolean =>
  error instanceof PolicyError && error.code === 'CROSS_SLOT' && /give hashTag/.test(error.message)

for (const kind of clientsForRun(CLUSTER_CLIENTS)) {
  test(`on a cluster, keys of one decision in different slots are refused before anything is sent by ${kind.name}`, async () => {
    await using open = await kind.open(cluster.roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
    const verbs = [
      () => limiter.take(KEYS),
      () => limiter.peek(KEYS),
      () => limiter.reset(KEYS),
      () => limiter.block(KEYS, '1s'),
      () => limiter.refund(KEYS, 1),
    ]
    for (const verb of verbs) await assert.rejects(async () => verb(), isCrossSlot)
    assert.equal((await limiter.peek('user:1')).remaining, 10)
  })

  test(`on a cluster, one key for all parts, or a tag that they have in common, is charged together by ${kind.name}`, async () => {
    await using open = await kind.open(cluster.roots)
    const untagged = createLimiter(policy, { store: redis(open.client, { prefix: `one ${kind.name}` }), ...NO_HASTE })
    assert.deepEqual(
      (await untagged.take('user:1', 3)).parts?.map(({ remaining }) => remaining),
      [7, 97],
    )
    const numberOf = (key: string): string => key.split(':')[1] as string
    for (const hashTag of ['common', numberOf]) {
      const limiter = createLimiter(policy, {
        store: redis(open.client, { prefix: `${typeof hashTag} ${kind.name}`, hashTag }),
        ...NO_HASTE,
      })
      const { parts, source } = await limiter.take(KEYS, 3)
      assert.deepEqual([source, parts?.map(({ remaining }) => remaining)], ['store', [7, 97]])
      assert.equal((await limiter.take(KEYS, 8)).allowed, false)
      assert.deepEqual(
        (await limiter.peek(KEYS)).parts?.map(({ remaining }) => remaining),
        [7, 97],
      )
    }
    const limiter = createLimiter(policy, { store: redis(open.client, { hashTag: numberOf }), ...NO_HASTE })
    await assert.rejects(async () => limiter.take(['user:1', 'tenant:2']), isCrossSlot)
  })
}

for (const kind of clientsForRun(SERVER_CLIENTS)) {
  test(`on a single server any keys are charged together by ${kind.name}`, async () => {
    await using open = await kind.open([server])
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
    assert.deepEqual(
      (await limiter.take(KEYS, 3)).parts?.map(({ remaining }) => remaining),
      [7, 97],
    )
  })
}

describe('leased cross slot', async () => {
  // Leases of several policies whose keys are in different slots of a real cluster, where no call can charge them together.

  const cluster = await clusterOfFile()

  const USER = tokenBucket({ limit: 5, window: '1s', burst: 60, name: 'user' })
  const TENANT = fixedWindow({ limit: 400, window: '30d', name: 'tenant' })
  const KEYS = ['user:1', 'tenant:1'] as const
  const NO_HASTE = { outage: 'closed', timeout: 60_000, lease: 1000 } as const

  function remainingOf({ parts = [] }: Decision): number[] {
    return parts.map(({ remaining }) => remaining)
  }

  async function drained(limiter: SharedLimiter, keys: readonly string[], cost = 1): Promise<number> {
    let passed = 0
    while ((await limiter.take(keys, cost)).allowed) passed += cost
    return passed
  }

  // In a short run each test has one client, by turns.
  for (const [i, kind] of clientsForRun(CLUSTER_CLIENTS).entries()) {
    everyNth(i, 3)(`keys in different slots are leased apart and spent together by ${kind.name}`, async () => {
      await using open = await kind.open(cluster.roots)
      using limiter = createLimiter(allOf([USER, TENANT]), { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
      const passed = await drained(limiter, KEYS)
      // A lease of two seconds takes ten off the burst.
      assert.ok(passed >= 50, `${passed}`)
      const left = remainingOf(await limiter.peek(KEYS))
      const others = await drained(limiter, ['user:2', 'tenant:1'])
      assert.ok(others >= 50)
      assert.ok((left[1] as number) <= 400 - passed)
      let tenant = passed + others
      for (let user = 3; user < 12; user++) tenant += await drained(limiter, [`user:${user}`, 'tenant:1'])
      assert.ok(tenant <= 400 && tenant > 300, `${tenant} of 400`)
    })

    everyNth(i + 1, 3)(`every verb does to each key in its slot what it does, by ${kind.name}`, async () => {
      await using open = await kind.open(cluster.roots)
      const quiet = allOf([fixedWindow({ limit: 100, window: '30d', name: 'small' }), TENANT])
      using limiter = createLimiter(quiet, { store: redis(open.client, { prefix: `verbs ${kind.name}` }), ...NO_HASTE })
      assert.deepEqual(remainingOf(await limiter.penalize(KEYS, 30)), [70, 370])
      assert.deepEqual(remainingOf(await limiter.refund(KEYS, 10)), [80, 380])
      assert.equal((await limiter.block(KEYS, '1m')).allowed, false)
      assert.equal((await limiter.take(KEYS)).allowed, false)
      assert.equal((await limiter.wait(KEYS, { maxWait: 10 })).allowed, false)
      await limiter.block(KEYS, 0)
      assert.equal((await limiter.wait(KEYS, { maxWait: 60_000, cost: 5 })).allowed, true)
      await limiter.reset(KEYS)
      const booked = await limiter.reserve(KEYS, 40)
      assert.deepEqual([booked.allowed, booked.waitMs], [true, 0])
      await booked.settle(25)
      const cancelled = await limiter.reserve(KEYS, 20)
      await cancelled.cancel()
      assert.equal(await drained(limiter, KEYS), 75, 'what was not used of a booking came back')
    })

    everyNth(i + 2, 3)(`work of unknown cost is held on all its levels or on none, by ${kind.name}`, async () => {
      await using open = await kind.open(cluster.roots)
      const small = fixedWindow({ limit: 100, window: '30d', name: 'small' })
      const store = redis(open.client, { prefix: `holds ${kind.name}` })
      using limiter = createLimiter(allOf([small, TENANT]), { store, ...NO_HASTE })
      const left = async (...keys: string[]): Promise<number[]> => remainingOf(await limiter.peek(keys))
      assert.notEqual(hashSlot(KEYS[0]), hashSlot(KEYS[1]))

      const work = await limiter.open(KEYS, { expect: 60 })
      assert.deepEqual([work.allowed, work.held, await left(...KEYS)], [true, 60, [40, 340]])
      const refused = await limiter.open(KEYS, { expect: 41 })
      assert.deepEqual([refused.allowed, refused.policy, await left(...KEYS)], [false, 'small', [40, 340]])
      assert.equal((await limiter.open({ small: 'user:2', tenant: 'tenant:1' }, { expect: 90 })).allowed, true)

      assert.equal(await work.add(60), true)
      assert.equal(await work.add(20), true)
      assert.equal(await work.add(21), false)
      assert.deepEqual([work.used, work.over], [80, 0])
      // What it grew by ahead of need is the same on both levels.
      assert.deepEqual(await left(...KEYS), [20 - work.held, 230 - work.held])
      await work.close()
      assert.deepEqual(await left(...KEYS), [20, 230])

      await limiter.penalize(['user:9', 'tenant:1'], 200)
      assert.deepEqual(await left('user:3', 'tenant:1'), [100, 30])
      const beyond = await limiter.open(['user:3', 'tenant:1'], { expect: 31 })
      assert.deepEqual([beyond.allowed, beyond.policy, await left('user:3', 'tenant:1')], [false, 'tenant', [100, 30]])
      const rest = await limiter.open(['user:3', 'tenant:1'], { expect: 30 })
      assert.deepEqual([rest.allowed, await left('user:3', 'tenant:1')], [true, [70, 0]])
      await rest.close(10)
      assert.deepEqual(await left('user:3', 'tenant:1'), [90, 20])
    })

    everyNth(i + 2, 3)(`a larger cost passes whole or not at all, and one that never can says so, by ${kind.name}`, async () => {
      await using open = await kind.open(cluster.roots)
      const policy = allOf([fixedWindow({ limit: 100, window: '30d', name: 'small' }), TENANT])
      using limiter = createLimiter(policy, { store: redis(open.client, { prefix: `large ${kind.name}` }), ...NO_HASTE })
      const never = await limiter.take(KEYS, 101)
      assert.deepEqual([never.allowed, never.retryAfterMs, remainingOf(never)], [false, Number.POSITIVE_INFINITY, [100, 400]])
      const takes = await Promise.all(Array.from({ length: 30 }, (_, i) => limiter.take(KEYS, i % 2 === 0 ? 1 : 30)))
      const spent = takes.reduce((sum, { allowed }, i) => sum + (allowed ? (i % 2 === 0 ? 1 : 30) : 0), 0)
      const rest = await drained(limiter, KEYS)
      assert.ok(spent + rest <= 100 && spent + rest >= 90, `${spent} and ${rest}`)
    })

    everyNth(i + 3, 3)(`what cannot be leased as a whole is still refused by ${kind.name}`, async () => {
      await using open = await kind.open(cluster.roots)
      const permits = concurrency({ limit: 5, ttl: '30s', name: 'permits' })
      using limiter = createLimiter(allOf([USER, permits]), { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
      await assert.rejects(async () => limiter.take(KEYS), { code: 'CROSS_SLOT' })
      await assert.rejects(async () => limiter.peek(KEYS), { code: 'CROSS_SLOT' })
    })

    everyNth(i + 4, 3)(`keys that share a slot by chance are as any others, by ${kind.name}`, async () => {
      await using open = await kind.open(cluster.roots)
      const policy = allOf([fixedWindow({ limit: 100, window: '30d', name: 'small' }), TENANT])
      using limiter = createLimiter(policy, { store: redis(open.client, { prefix: `chance ${kind.name}` }), ...NO_HASTE })
      const keys = ['user:1', sameSlotAs('user:1')]
      assert.deepEqual(remainingOf(await limiter.penalize(keys, 30)), [70, 370])
      assert.equal((await limiter.take(keys, 50)).allowed, true)
      const booked = await limiter.reserve(keys, 10)
      assert.equal(booked.allowed, true)
      await booked.cancel()
      assert.equal((await limiter.take(keys, 1000)).retryAfterMs, Number.POSITIVE_INFINITY)
    })
  }

  /** Another key, with a tag of its own, in the same slot. */
  function sameSlotAs(key: string): string {
    let i = 0
    while (hashSlot(`tenant:${i}`) !== hashSlot(key)) i++
    return `tenant:${i}`
  }

  const [ANY] = CLUSTER_CLIENTS

  longTest('what was used while the server of one key was out is charged to both of them afterwards', async () => {
    await using open = await (ANY as (typeof CLUSTER_CLIENTS)[0]).open(cluster.roots)
    const policy = allOf([
      fixedWindow({ limit: 1000, window: '30d', name: 'daily' }),
      fixedWindow({ limit: 2000, window: '30d', name: 'all' }),
    ])
    const options = { store: redis(open.client, { prefix: 'outage' }), outage: 'local', share: 0.1, timeout: 300 } as const
    using limiter = createLimiter(policy, options)
    const other = await cluster.primaryOf(hashSlot('user'))
    let tenant = 0
    while ((await cluster.primaryOf(hashSlot(`tenant:${tenant}`))) === other) tenant++
    const keys = ['user', `tenant:${tenant}`]
    const server = await cluster.primaryOf(hashSlot(keys[1] as string))
    await limiter.take(keys)
    server.pause()
    try {
      await until('it is decided without the store', async () => {
        await limiter.take(keys)
        return limiter.stats().outageTokens >= 5
      })
    } finally {
      server.resume()
    }
    await until('all is accounted for', async () => {
      const { source } = await limiter.peek(keys)
      return source === 'store' && limiter.stats().accountedTokens === limiter.stats().outageTokens
    })
    const { parts = [] } = await limiter.peek(keys)
    const { outageTokens, admittedTokens } = limiter.stats()
    const used = [1000, 2000].map((limit, i) => limit - (parts[i]?.remaining ?? 0))
    assert.ok(
      used.every((tokens) => tokens >= admittedTokens && tokens >= outageTokens),
      `${used} of ${admittedTokens}, ${outageTokens}`,
    )
  })
})

for (const kind of clientsForRun(CLUSTER_CLIENTS)) {
  const open = await kind.open(cluster.roots)
  after(() => open[Symbol.asyncDispose]())
  equalLevels(`keys in different slots, by ${kind.name}`, () => redis(open.client, { prefix: `equal ${kind.name}` }), { without: ['byId'] })
}
