import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import { FaultProxy, PostgresProcess, shortOrLong } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { fixedWindow, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { storeConformance } from '../store-testing/index.js'
import { postgres as postgresIn } from './postgres.js'
import { postgresStore } from './postgres-store.js'
import type { PostgresClient } from './sql-runner-for.js'
import { postgresTable } from './table-name.js'

let server: PostgresProcess
let pool: pg.Pool
let sql: postgres.Sql
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(postgresTable())
  pool = new pg.Pool({ connectionString: server.url, max: 10 })
  sql = postgres(server.url, { max: 10 })
})
after(async () => {
  await pool.end()
  await sql.end()
  await server.stop()
})

storeConformance({ test, connect: () => postgresStore({ client: pool }), prefix: 'pg' })
storeConformance({ test, connect: () => postgresStore({ client: sql }), prefix: 'postgres' })

const day = fixedWindow({ limit: 100, window: '1d', name: 'day' })
/** @param client with a table of its own, or the one of all tests. */
const over = (policy: Policy, more: Partial<SharedOptions> = {}, client: PostgresClient = pool, table?: string) =>
  createLimiter(policy, { store: postgresIn(client, table === undefined ? {} : { table }), outage: 'closed', timeout: 60_000, ...more })

for (const mode of ['exact', 'leased'] as const) {
  test(`I1 over PostgreSQL: of a fleet that races for one key exactly the limit passes, ${mode}`, async () => {
    const fleet = Array.from({ length: 6 }, (_, i) => over(day, { mode }, i % 2 === 0 ? pool : sql))
    const takes = shortOrLong(300, 1500)
    const decisions = await Promise.all(Array.from({ length: takes }, (_, i) => fleet[i % fleet.length]?.take(`race ${mode}`)))
    const passed = decisions.filter((decision) => decision?.allowed).length
    // On a busy machine tokens of a lease may expire on their way.
    assert.ok(mode === 'exact' ? passed === 100 : passed <= 100, String(passed))
    assert.ok(decisions.every((decision) => decision?.source !== 'outage'))
    for (const limiter of fleet) limiter.close()
  })
}

for (const level of ['read committed', 'serializable']) {
  test(`I1 over PostgreSQL: of many keys that a fleet takes together each admits exactly its limit, ${level}`, async () => {
    const [keys, limit] = [shortOrLong(40, 300), 3]
    const few = fixedWindow({ limit, window: '1d', name: `few ${level.length}` })
    const isolation = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`
    const url = `${server.url}?options=${encodeURIComponent(isolation)}`
    const pools = Array.from({ length: 3 }, () => new pg.Pool({ connectionString: url, max: 4 }))
    const fleet = pools.map((client) => over(few, { mode: 'exact' }, client))
    const admitted = new Map<number, number>()
    const caller = async (i: number): Promise<void> => {
      for (let n = 0; n < keys; n++) {
        const key = i % 2 === 0 ? n : keys - 1 - n
        const decision = await fleet[i % 3]?.take(`many ${key}`)
        assert.notEqual(decision?.source, 'outage')
        if (decision?.allowed) admitted.set(key, (admitted.get(key) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, i) => caller(i)))
    assert.deepEqual(new Set(admitted.values()), new Set([limit]))
    assert.equal(admitted.size, keys)
    for (const limiter of fleet) limiter.close()
    await Promise.all(pools.map((each) => each.end()))
  })
}

test('several policies over PostgreSQL charge all their keys or none', async () => {
  const both = allOf([day, tokenBucket({ limit: 10, window: '1d', name: 'few' })])
  const fleet = Array.from({ length: 3 }, () => over(both, { mode: 'exact' }))
  const decisions = await Promise.all(Array.from({ length: 60 }, (_, i) => fleet[i % 3]?.take(['tenant', `user ${i % 2}`])))
  assert.equal(decisions.filter((decision) => decision?.allowed).length, 20)
  const left = await over(day, { mode: 'exact' }).peek('tenant')
  assert.equal(left.remaining, 80)
})

test('the first takes of a pool wait for its connection: that the server is far away is no outage', async () => {
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'latency', delayMs: 90 })
  // Longer than a swap takes over an open connection, and shorter than over one that has to be opened.
  for (const policy of [
    slidingWindow({ limit: 5, window: '1d', name: 'far' }),
    tokenBucket({ limit: 5, window: '1d', name: 'far rate' }),
  ]) {
    const cold = new pg.Pool({ connectionString: server.urlAt(proxy.port), max: 10 })
    const limiter = over(policy, { mode: 'exact', timeout: 400 }, cold)
    const decisions = await Promise.all(Array.from({ length: 60 }, () => limiter.take('cold')))
    assert.deepEqual([...new Set(decisions.map(({ source }) => source))], ['store'])
    assert.equal(decisions.filter(({ allowed }) => allowed).length, 5)
    limiter.close()
    await cold.end()
  }
})

test('nor is it one that connections take several timeouts to open', async () => {
  class SlowToOpen extends pg.Client {}
  const connect = (client: pg.Client, done: never): unknown => setTimeout(() => pg.Client.prototype.connect.call(client, done), 350)
  Object.assign(SlowToOpen.prototype, {
    connect(this: pg.Client, done: never) {
      connect(this, done)
    },
  })
  for (const mode of ['exact', 'leased'] as const) {
    const cold = new pg.Pool({ connectionString: server.url, max: 10, Client: SlowToOpen } as pg.PoolConfig)
    const limiter = over(tokenBucket({ limit: 1_000, window: '1d', name: `slow to open ${mode}` }), { mode, timeout: 100 }, cold)
    const decisions = await Promise.all(Array.from({ length: 200 }, (_, i) => limiter.take(`cold ${i % 50}`)))
    assert.ok(!decisions.some(({ source }) => source === 'outage'))
    limiter.close()
    await cold.end()
  }
})

test('a server that opens no connection is an outage within about a second, and then at once', async () => {
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'black-hole' })
  const cold = new pg.Pool({ connectionString: server.urlAt(proxy.port), max: 10 })
  const limiter = over(day, { mode: 'exact', timeout: 250 }, cold)
  const began = performance.now()
  for (let i = 0; i < 6; i++) assert.equal((await limiter.take(`hole ${i}`)).source, 'outage')
  // The first waits for the connection, some more for their own timeout.
  assert.ok(performance.now() - began < 6000, String(performance.now() - began))
  limiter.close()
  proxy.set({ kind: 'cut' })
  await cold.end().catch(() => undefined)
})
