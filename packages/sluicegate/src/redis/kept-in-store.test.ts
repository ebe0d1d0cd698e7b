import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { everyNth, Random, shortOrLong } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import type { Permit } from '../decision/permit.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

const redis = await ownRedis()
after(() => redis.stop())
beforeEach(() => redis.send('FLUSHALL'))

function limiterOf(policy: Policy): SharedLimiter {
  return createLimiter(policy, {
    store: scriptedStore(new RedisScripts(redis.runner, new RedisKeys('kept'))),
    mode: 'exact',
    outage: 'closed',
    timeout: 60_000,
  })
}

/** Windows from the shortest one on. */
const POLICIES: readonly Policy[] = [1, 16.667, 250, 86_400_000].flatMap((window) => [
  tokenBucket({ limit: 10, window }),
  gcra({ limit: 10, window, burst: 1 }),
  fixedWindow({ limit: 10, window }),
  slidingWindow({ limit: 10, window }),
  slidingLog({ limit: 10, window }),
  concurrency({ limit: 10, ttl: window }),
])

async function keys(): Promise<readonly string[]> {
  return (await redis.send('KEYS', '*')) as readonly string[]
}

// A short run has a fifth: one of each algorithm, with one of the windows, and one of several policies.
for (const [i, policy] of [...POLICIES, fixedWindow({ limit: 10, window: 'month' }), allOf(POLICIES.slice(1, 6))].entries()) {
  everyNth(i, 5)(`${policy.name}, ${policy.windowMs} ms: after each verb every key in the store has an end`, async () => {
    const limiter = limiterOf(policy)
    const random = new Random(policy.limit)
    let seen = 0
    for (let i = 0; i < 60; i++) {
      const cost = random.integer(1, 12)
      const verbs = [
        () => limiter.take('k', cost),
        () => limiter.take('k'),
        () => limiter.penalize('k', cost),
        () => limiter.refund('k', cost),
        () => limiter.block('k', random.pick([0.001, 1, 30])),
        async () => (await limiter.reserve('k', cost)).settle(random.integer(0, 12)),
        async () => (await limiter.reserve('k', cost)).cancel(),
        async () => heartbeat((await limiter.take('k')) as Permit<'later'>),
        () => limiter.peek('k'),
      ]
      await random.pick(verbs)()
      for (const key of await keys()) {
        // -2: it has ended meanwhile; -1 would be for ever.
        assert.notEqual(await redis.send('PTTL', key), -1, key)
        seen++
      }
    }
    await limiter.penalize('k', 1)
    assert.ok(seen > 0 || policy.windowMs < 20)
  })
}

async function heartbeat(permit: Permit<'later'>): Promise<unknown> {
  return 'heartbeat' in permit ? permit.heartbeat() : undefined
}

test('policies of every algorithm under one name, prefix and key do not get in each other’s way', async () => {
  const limiters = [tokenBucket, fixedWindow, slidingWindow, slidingLog].map((make) =>
    limiterOf(make({ limit: 3, window: '1h', name: 'api' })),
  )
  limiters.push(limiterOf(concurrency({ limit: 3, ttl: '1h', name: 'api' })))
  for (let i = 0; i < 3; i++) for (const limiter of limiters) assert.equal((await limiter.take('k')).remaining, 2 - i)
  for (const limiter of limiters) {
    assert.equal((await limiter.take('k')).allowed, false)
    for (const verb of ['penalize', 'refund'] as const) await limiter[verb]('k', 1)
    await (await limiter.reserve('k', 1)).cancel()
    await limiter.block('k', 1)
  }
  assert.equal((await keys()).length, 5)
})

for (const policy of POLICIES.filter(({ windowMs, burst }) => windowMs > 1000 && burst === 10)) {
  test(`${policy.algorithm}: a denial writes nothing, nor does a cost above the limit, a peek, or a refund of nothing`, async () => {
    const limiter = limiterOf(policy)
    await limiter.take('k', 10)
    const before = await everything()
    for (const cost of [1, 10, 11, 1e9, 1e300]) {
      assert.equal((await limiter.take('k', cost)).allowed, false)
      await limiter.peek('k', cost)
    }
    assert.equal((await limiter.reserve('k', 11)).allowed, false)
    assert.deepEqual(await everything(), before)
    for (const cost of [11, 1e300]) assert.equal((await limiter.take('other', cost)).allowed, false)
    await limiter.peek('other')
    await limiter.refund('other', 5)
    assert.deepEqual(await everything(), before)
  })
}

/** Every key, its value byte by byte and its end. */
async function everything(): Promise<readonly unknown[]> {
  const all = [...(await keys())].sort()
  return Promise.all(all.map(async (key) => [key, String(await redis.send('DUMP', key)), await redis.send('PEXPIRETIME', key)]))
}

test('a log keeps no more entries than its limit, however long it is used, refunded and penalized', async () => {
  const limiter = limiterOf(slidingLog({ limit: 20, window: 5, name: 'log' }))
  const random = new Random(1)
  let longest = 0
  for (let i = 0; i < shortOrLong(600, 2000); i++) {
    const verb = random.pick(['take', 'take', 'take', 'refund', 'penalize'] as const)
    await limiter[verb]('k', random.pick([1, 1, 3]))
    if (i % 10 === 0) longest = Math.max(longest, Number(await redis.send('XLEN', 'kept:sliding-log:log:{k}')))
  }
  assert.ok(longest > 0 && longest <= 22, `${longest} entries`)
})

test('permits keep no more than their places', async () => {
  const limiter = limiterOf(concurrency({ limit: 20, ttl: 5, name: 'places' }))
  let most = 0
  for (let i = 0; i < shortOrLong(200, 500); i++) {
    await limiter.take('k', 3)
    most = Math.max(most, Number(await redis.send('ZCARD', 'kept:concurrency:places:{k}')))
  }
  assert.ok(most > 0 && most <= 20, `${most} places`)
})

test('a take of 10,000 permits, their heartbeat and their release stay far below the time a server lets a script have', async () => {
  const limiter = limiterOf(concurrency({ limit: 10_000, ttl: '1h' }))
  await redis.send('CONFIG', 'RESETSTAT')
  await redis.send('CONFIG', 'SET', 'slowlog-log-slower-than', '1000000')
  await redis.send('SLOWLOG', 'RESET')
  for (let i = 0; i < 3; i++) {
    const permit = (await limiter.take('k', 10_000)) as Permit<'later'>
    assert.equal(permit.allowed, true)
    assert.equal((await limiter.take('k')).allowed, false)
    assert.equal(await permit.heartbeat(), true)
    assert.equal(await permit.release(), true)
  }
  await limiter.penalize('k', 10_000)
  assert.equal((await limiter.refund('k', 10_000)).remaining, 10_000)
  // A second, of the five after which a server answers others with BUSY.
  assert.deepEqual(await redis.send('SLOWLOG', 'GET'), [])
})
