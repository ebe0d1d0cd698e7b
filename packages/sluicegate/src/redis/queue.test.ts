import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createClient } from '@redis/client'
import { freePorts, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { concurrency, fixedWindow, gcra, type Policy, QueueError, type SharedLimiter, tokenBucket } from '../index.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { redis as redisStore } from './index.js'

// Jobs in queues over limiters of a real server.

const redis = await ownRedis()
after(() => redis.stop())

function limiterOf(policy: Policy, options: Partial<SharedOptions> = {}): SharedLimiter {
  return createLimiter(policy, { store: redisStore(redis.client), timeout: 10_000, outage: 'closed', ...options })
}

for (const mode of ['leased', 'exact'] as const) {
  test(`${mode}: jobs run in order and never faster than the policy, in two processes' queues together`, async () => {
    // A bucket of 1,000/s, of which a lease is a tenth.
    const policy = tokenBucket({ limit: 1000, window: '1s', burst: 200, name: `pace ${mode}` })
    using first = limiterOf(policy, { mode })
    using second = limiterOf(policy, { mode })
    const startedMs = performance.now()
    const orders: number[][] = [[], []]
    const runs = [first, second].flatMap((limiter, who) =>
      Array.from({ length: 300 }, (_, i) => limiter.run('key', () => (orders[who] as number[]).push(i))),
    )
    await Promise.all(runs)
    const elapsedMs = performance.now() - startedMs
    assert.ok(600 <= 200 + elapsedMs + 1, `600 jobs in ${elapsedMs} ms`)
    for (const order of orders)
      assert.deepEqual(
        order,
        order.toSorted((a, b) => a - b),
      )
    assert.equal(orders.flat().length, 600)
  })
}

test('a leased queue asks the store for few of its jobs', async () => {
  using limiter = limiterOf(tokenBucket({ limit: 100_000, window: '1s', name: 'few calls' }))
  await limiter.run('key', () => undefined)
  const before = limiter.stats().storeCalls
  for (let i = 0; i < 2000; i++) await limiter.run('key', () => undefined)
  assert.ok(limiter.stats().storeCalls - before < 500, String(limiter.stats().storeCalls - before))
})

test('places are shared with other processes, kept while a job runs and given back after it', async () => {
  const policy = concurrency({ limit: 2, ttl: '1s', name: 'places' })
  using first = limiterOf(policy)
  using second = limiterOf(policy)
  let running = 0
  let most = 0
  const work = async (): Promise<void> => {
    running++
    most = Math.max(most, running)
    // One turn of the server: others are asking meanwhile.
    await redis.send('PING')
    running--
  }
  await Promise.all([first, second].flatMap((limiter) => Array.from({ length: 10 }, () => limiter.run('key', work))))
  assert.ok(most <= 2, String(most))
  assert.equal((await first.peek('key')).remaining, 2)
})

test('what is aborted or denied is not spent', async () => {
  using limiter = limiterOf(fixedWindow({ limit: 3, window: '1d', name: 'abort' }), { mode: 'exact' })
  const controller = new AbortController()
  const { signal } = controller
  for (let i = 0; i < 3; i++) await limiter.run('key', () => undefined)
  const runs = Array.from({ length: 50 }, () => limiter.run('key', () => undefined, { signal }))
  controller.abort(new Error('enough'))
  for (const run of runs) await assert.rejects(run, /enough/)
  await assert.rejects(
    limiter.run('key', () => undefined, { maxWait: 50 }),
    { code: 'WAIT_TOO_LONG' },
  )
  await assert.rejects(
    limiter.run('key', () => undefined, { cost: 4 }),
    { code: 'IMPOSSIBLE' },
  )
  await limiter.refund('key', 1)
  assert.equal(await limiter.run('key', () => 'mine'), 'mine')
})

test('settle corrects the cost in the store', async () => {
  using limiter = limiterOf(gcra({ limit: 100, window: '1h', name: 'settle' }), { mode: 'exact' })
  await limiter.run('key', (job) => job.settle(10), { cost: 60 })
  assert.equal((await limiter.peek('key')).remaining, 90)
})

longTest('an outage is an error of its own, and the queue goes on once the server is back', async (t) => {
  const [port = 0] = await freePorts(1)
  let server = await RedisProcess.start({ port })
  t.after(() => server.stop())
  const own = createClient({ url: server.url, socket: { reconnectStrategy: 20 }, disableOfflineQueue: true })
  own.on('error', () => undefined)
  await own.connect()
  t.after(() => own.destroy())
  using limiter = createLimiter(tokenBucket({ limit: 100, window: '1s', name: 'outage' }), {
    store: redisStore(own),
    mode: 'exact',
    outage: 'closed',
  })
  assert.equal(await limiter.run('key', () => 1), 1)
  await server.stop()
  await until('the store is out of reach', async () => (await limiter.take('key')).source === 'outage')
  await assert.rejects(
    limiter.run('key', () => 2, { maxWait: 3000 }),
    (error) => error instanceof QueueError && error.code === 'OUTAGE',
  )
  const waiting = limiter.run('key', () => 3)
  server = await RedisProcess.start({ port })
  assert.equal(await waiting, 3)
})
