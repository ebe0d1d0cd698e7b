import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import { freePorts, RedisProcess } from 'sluicegate-testkit'
import { denied } from 'sluicegate-testkit/adapters/flexible-denial.js'
import { RateLimiterRedis, type RateLimiterRedisOptions, RateLimiterRes } from './index.js'

const DAY_S = 86_400

let server: RedisProcess
let storeClient: RateLimiterRedisOptions['storeClient']
let close: () => void
before(async () => {
  const [port = 0] = await freePorts(1)
  server = await RedisProcess.start({ port })
  const client = createClient({ url: server.url })
  client.on('error', () => undefined)
  await client.connect()
  storeClient = client as never
  close = () => client.destroy()
})
after(async () => {
  close()
  await server.stop()
})

const limiterOf = (options: Partial<RateLimiterRedisOptions>): RateLimiterRedis =>
  new RateLimiterRedis({ storeClient, points: 5, duration: DAY_S, timeoutMs: 30_000, ...options })

test('processes of a fleet consume the same points, and lock the same keys out', async (t) => {
  const [a, b] = [limiterOf({ keyPrefix: 'login', blockDuration: 2 * DAY_S }), limiterOf({ keyPrefix: 'login', blockDuration: 2 * DAY_S })]
  t.after(() => {
    a.close()
    b.close()
  })
  const results = await Promise.allSettled(Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? a : b).consume('ada')))
  const passed = results.filter(({ status }) => status === 'fulfilled').length
  assert.equal(passed, 5)
  for (const result of results) if (result.status === 'rejected') assert.ok(result.reason instanceof RateLimiterRes)
  const known = await b.get('ada')
  assert.ok(known !== null && known.consumedPoints > 5 && known.msBeforeNext > DAY_S * 1000)
  assert.equal(await a.delete('ada'), true)
  assert.equal(await b.delete('ada'), false)
  assert.equal((await b.penalty('ada', 2)).consumedPoints, 2)
  assert.equal((await a.reward('ada')).consumedPoints, 1)
  assert.equal((await a.consume('ada', 2)).consumedPoints, 3)
})

test('limiters with other prefixes count apart, and one with a prefix of its own keeps what was consumed when its points change', async (t) => {
  const limiters = [limiterOf({ keyPrefix: 'a' }), limiterOf({ keyPrefix: 'b' }), limiterOf({}), limiterOf({ points: 9 })]
  t.after(() => {
    for (const limiter of limiters) limiter.close()
  })
  for (const limiter of limiters) assert.equal((await limiter.consume('bob', 2)).consumedPoints, 2)
  const more = limiterOf({ keyPrefix: 'a', points: 8 })
  t.after(() => more.close())
  assert.equal((await more.get('bob'))?.consumedPoints, 2)
})

test('leased points are consumed in the process, and never more than there are', async (t) => {
  const limiter = limiterOf({ keyPrefix: 'leased', points: 50, mode: 'leased' })
  t.after(() => limiter.close())
  const results = []
  for (let i = 0; i < 100; i++) results.push(await limiter.consume('ada').catch((reason) => reason))
  const passed = results.filter((result: RateLimiterRes) => result.consumedPoints <= 50).length
  assert.equal(passed, 50)
  assert.ok(limiter.limiter.stats().storeCalls < 60, 'most are not asked of the server')
})

test('a block at a denial wipes what was consumed, and is laid anew after a delete() elsewhere', async (t) => {
  const [a, b] = [0, 1].map(() => limiterOf({ keyPrefix: 'anew', points: 3, blockDuration: 600 })) as [RateLimiterRedis, RateLimiterRedis]
  t.after(() => {
    a.close()
    b.close()
  })
  for (const other of [b, a]) {
    await a.consume('ada', 3)
    assert.equal((await b.get('ada'))?.consumedPoints, 3, 'the truth until it is blocked')
    assert.equal((await denied(a, 'ada')).msBeforeNext, 600_000)
    const { remaining, retryAfterMs } = await b.limiter.peek(b.getKey('ada'))
    assert.ok(remaining === 3 && retryAfterMs <= 600_000 && retryAfterMs > 500_000)
    const calls = b.limiter.stats().storeCalls
    assert.ok((await denied(b, 'ada')).msBeforeNext <= 600_000)
    assert.equal(b.limiter.stats().storeCalls, calls + 1, 'a block that was laid elsewhere is not laid again')
    await other.delete('ada')
  }
  await denied(a, 'bob', 9)
  await b.delete('bob')
  assert.equal((await denied(a, 'bob', 9)).msBeforeNext, 600_000)
  assert.equal((await b.get('bob'))?.consumedPoints, 4)
})

test('of a crowd that is denied at once each process blocks once', async (t) => {
  const limiter = limiterOf({ keyPrefix: 'crowd', blockDuration: 600 })
  t.after(() => limiter.close())
  const results = await Promise.allSettled(Array.from({ length: 105 }, () => limiter.consume('ada')))
  const seen = results.flatMap((result) => (result.status === 'rejected' ? [(result.reason as RateLimiterRes).msBeforeNext] : []))
  assert.deepEqual(seen, Array(100).fill(600_000))
  assert.equal(limiter.limiter.stats().storeCalls, 105 + 2)
})

test('a lease does not deny a key that another process has unblocked', async (t) => {
  const [a, b] = [0, 1].map(() => limiterOf({ keyPrefix: 'let go', mode: 'leased', points: 50, blockDuration: 600 })) as [
    RateLimiterRedis,
    RateLimiterRedis,
  ]
  t.after(() => {
    a.close()
    b.close()
  })
  for (let i = 0; i < 50; i++) await a.consume('ada')
  assert.equal((await denied(a, 'ada')).msBeforeNext, 600_000)
  const calls = a.limiter.stats().storeCalls
  for (let i = 0; i < 200; i++) await denied(a, 'ada')
  assert.ok(a.limiter.stats().storeCalls < calls + 20, 'a block is known')
  await b.delete('ada')
  for (let i = 0; i < 20; i++) await a.consume('ada').catch(() => undefined)
  assert.equal(await b.get('ada').then((known) => (known?.consumedPoints ?? 0) > 50), false)
})

test('what the server could not decide is an error and no denial', async (t) => {
  const [closed, open, local] = (['closed', 'open', 'local'] as const).map((outage) =>
    limiterOf({ keyPrefix: outage, points: 50, outage, timeoutMs: 50 }),
  ) as [RateLimiterRedis, RateLimiterRedis, RateLimiterRedis]
  t.after(() => {
    for (const limiter of [closed, open, local]) limiter.close()
  })
  await server.stop()
  const isOutage = { name: 'StoreError', code: 'OUTAGE' }
  await assert.rejects(closed.consume('ada'), isOutage)
  await assert.rejects(closed.get('ada'), isOutage)
  for (const limiter of [closed, local, open]) {
    await assert.rejects(limiter.penalty('ada'), isOutage)
    await assert.rejects(limiter.block('ada', 1), isOutage)
    await assert.rejects(limiter.delete('ada'), isOutage)
  }
  assert.ok((await open.consume('ada')) instanceof RateLimiterRes)
  assert.equal(await open.get('ada'), null)
  assert.equal(await local.get('ada'), null)
  const { remainingPoints } = await local.consume('ada')
  assert.equal((await local.get('ada'))?.remainingPoints, remainingPoints)
  for (let i = 0; i < remainingPoints; i++) await local.consume('ada')
  await assert.rejects(local.consume('ada'), isOutage)
  await assert.rejects(local.get('ada'), isOutage)
})

test('an option that is refused leaves no limiter behind that asks the server', () => {
  let asked = 0
  const sendCommand = async (): Promise<string> => String(asked++)
  const cases = [
    ...[{ blockDuration: -1 }, { blockDuration: 400 * DAY_S }, { keyPrefix: 7 }, { keyPrefix: 'grün' }, { keyPrefix: 'x'.repeat(121) }],
    ...[{ points: 0 }, { execEvenly: true }],
  ]
  for (const option of cases) {
    const storeClient = { sendCommand, isOpen: true } as never
    assert.throws(() => limiterOf({ storeClient, ...(option as object) }), { option: Object.keys(option)[0] })
  }
  assert.equal(asked, 0)
})

test('what is turned off is taken', (t) => {
  const off = {
    execEvenly: false,
    insuranceLimiter: null,
    inMemoryBlockOnConsumed: 0,
    customIncrTtlLuaScript: undefined,
  }
  const limiter = limiterOf({ ...(off as object), useRedisPackage: true, lease: undefined as never, hotKeys: undefined as never })
  t.after(() => limiter.close())
  assert.equal(limiter.points, 5)
})

test('a client that is none is refused', () => {
  for (const none of [{}, undefined, 'redis://']) {
    assert.throws(() => limiterOf({ storeClient: none as never }), { code: 'CLIENT_INVALID', option: 'storeClient' })
  }
})
