import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { longTest, PostgresProcess } from 'sluicegate-testkit'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { FaultProxy } from 'sluicegate-testkit/servers/fault-proxy.js'
import { until } from 'sluicegate-testkit/servers/until.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Policy } from '../index.js'
import { redis } from '../redis/index.js'
import { region } from '../regions/index.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { postgres, postgresTable } from './index.js'

// Two regions, each with its own Redis, and PostgreSQL as the home, behind a proxy for one of them.

let server: PostgresProcess
let ocean: FaultProxy
let stores: OwnRedis[]
const pools: pg.Pool[] = []
const limiters: SharedLimiter[] = []

function limiterIn(i: number, policy: Policy): SharedLimiter {
  const url = new URL(server.url)
  if (i === 0) url.host = `${ocean.host}:${ocean.port}`
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => undefined)
  pools.push(pool)
  const local = redis((stores[i] as OwnRedis).client)
  const store = region({ name: `r${i}`, local, home: postgres(pool), share: 0.1, timeout: 2_000 })
  const limiter = createLimiter(policy, { store, timeout: 2_000 })
  limiters.push(limiter)
  return limiter
}

before(async () => {
  server = await PostgresProcess.start()
  await server.ask(postgresTable())
  ocean = await FaultProxy.before({ host: '127.0.0.1', port: Number(new URL(server.url).port) })
  stores = [await ownRedis(), await ownRedis()]
})

after(async () => {
  for (const limiter of limiters) limiter.close()
  await Promise.all(pools.map((pool) => pool.end()))
  for (const store of stores) await store.stop()
  await ocean.stop()
  await server.stop()
})

async function passedOf(limiter: SharedLimiter, takes: number): Promise<number> {
  const decisions = await Promise.all(Array.from({ length: takes }, () => limiter.take('k')))
  return decisions.filter(({ allowed }) => allowed).length
}

longTest('two regions admit together what the policy says of a budget in PostgreSQL', async () => {
  const policy = fixedWindow({ limit: 100, window: '1h', name: 'together' })
  const [a, b] = [limiterIn(0, policy), limiterIn(1, policy)]
  let passed = 0
  // What a region holds unused goes back to the home after some seconds.
  await until('the budget is used', async () => {
    const [inOne, inOther] = await Promise.all([passedOf(a, 5), passedOf(b, 5)])
    passed += inOne + inOther
    return passed >= 100
  })
  for (let round = 0; round < 5; round++) passed += (await passedOf(a, 5)) + (await passedOf(b, 5))
  assert.equal(passed, 100)
  assert.ok((a.stats().region?.renewals ?? 0) > 0)
})

test('while PostgreSQL is out a region admits its share, which is charged there afterwards', async () => {
  const policy = fixedWindow({ limit: 1000, window: '1h', name: 'cut off' })
  const limiter = limiterIn(0, policy)
  assert.ok((await limiter.take('k')).allowed)
  ocean.set({ kind: 'cut' })
  try {
    let passed = 0
    for (let round = 0; round < 30; round++) passed += await passedOf(limiter, 10)
    assert.ok(passed >= 90 && passed <= 110, `${passed} passed without the home: a tenth, and what the region held`)
    assert.equal(limiter.stats().region?.isHomeOut, true)
  } finally {
    ocean.set({ kind: 'none' })
  }
  await until('the charge at the home', async () => {
    await passedOf(limiter, 10)
    return (limiter.stats().region?.accountedTokens ?? 0) > 50
  })
  assert.ok((await limiterIn(1, policy).peek('k')).remaining < 900)
})
