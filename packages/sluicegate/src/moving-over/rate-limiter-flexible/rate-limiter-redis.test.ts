import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import { freePorts, RedisProcess } from 'sluicegate-testkit'
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

test('of as many blocked keys is remembered as maxKeys says', async (t) => {
  const keys = Array.from({ length: 400 }, (_, i) => `key ${i}`)
  const blockedAnew = async (maxKeys: number): Promise<number> => {
    const limiter = limiterOf({ keyPrefix: `most-${maxKeys}`, points: 1, blockDuration: 2 * DAY_S, maxKeys })
    t.after(() => limiter.close())
    for (let round = 0; round < 2; round++) await Promise.allSettled(keys.map((key) => limiter.consume(key)))
    const denials = await Promise.all(keys.map((key) => limiter.consume(key).catch((reason) => reason)))
    return denials.filter(({ msBeforeNext }) => msBeforeNext === 2 * DAY_S * 1000).length
  }
  assert.ok((await blockedAnew(64)) > 200)
  // Those that are asked again within a millisecond seem to be blocked anew.
  assert.ok((await blockedAnew(1_000)) < 40)
})

test('what the server could not decide is an error and no denial', async (t) => {
  const closed = limiterOf({ keyPrefix: 'closed', outage: 'closed', timeoutMs: 50 })
  const open = limiterOf({ keyPrefix: 'open', outage: 'open', timeoutMs: 50 })
  t.after(() => {
    closed.close()
    open.close()
  })
  await server.stop()
  await assert.rejects(closed.consume('ada'), { name: 'StoreError', code: 'OUTAGE' })
  for (const call of [closed.get('ada'), closed.penalty('ada'), closed.block('ada', 1), closed.delete('ada')]) {
    await assert.rejects(call, { name: 'StoreError', code: 'OUTAGE' })
  }
  assert.ok((await open.consume('ada')) instanceof RateLimiterRes)
})

test('an option that is refused leaves no limiter behind that asks the server', () => {
  let asked = 0
  const sendCommand = async (): Promise<string> => String(asked++)
  const cases = [{ blockDuration: -1 }, { blockDuration: 400 * DAY_S }, { keyPrefix: 7 }, { points: 0 }, { execEvenly: true }]
  for (const option of cases) {
    const storeClient = { sendCommand, isOpen: true } as never
    assert.throws(() => limiterOf({ storeClient, ...(option as object) }), { option: Object.keys(option)[0] })
  }
  assert.equal(asked, 0)
})

test('a client that is none is refused', () => {
  assert.throws(() => limiterOf({ storeClient: {} as never }), { code: 'CLIENT_INVALID' })
  assert.throws(() => limiterOf({ useRedisPackage: true } as object), { option: 'useRedisPackage' })
})
