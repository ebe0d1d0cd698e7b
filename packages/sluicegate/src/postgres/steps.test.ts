import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import postgres from 'postgres'
import { PgBouncerProcess, PostgresProcess, until } from 'sluicegate-testkit'
import { type GivenTimeLimiter, limiterAtGivenTimes } from 'sluicegate-testkit/postgres/given-time.js'
import { feltChanges, feltGifts } from 'sluicegate-testkit/suites/layer-suite.js'
import { createLimiter } from '../create-limiter.js'
import { allOf } from '../policy/all-of.js'
import { levels } from '../policy/levels.js'
import type { Policy } from '../policy/policy.js'
import { fixedWindow, slidingLog, tokenBucket } from '../policy/single-policy.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { casStore } from '../store/cas.js'
import type { CasStore } from '../store/cas-store.js'
import { type ManualClock, manualClock } from '../time/clock.js'
import { postgres as postgresIn } from './postgres.js'
import { postgresStore } from './postgres-store.js'
import type { PostgresClient } from './sql-runner-for.js'
import { postgresTable } from './table-name.js'

let server: PostgresProcess
let pool: pg.Pool
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(postgresTable())
  pool = new pg.Pool({ connectionString: server.url, max: 10 })
})
after(async () => {
  await pool.end()
  await server.stop()
})

/** @param client with a table of its own, or the one of all tests. */
const over = (policy: Policy, more: Partial<SharedOptions> = {}, client: PostgresClient = pool, table?: string) =>
  createLimiter(policy, {
    store: postgresIn(client, table === undefined ? {} : { table }),
    mode: 'exact',
    outage: 'closed',
    timeout: 5000,
    ...more,
  })

const OLD = (table: string): string =>
  `CREATE TABLE ${table} (key bytea PRIMARY KEY, version bigint NOT NULL, expires bigint NOT NULL, value bytea NOT NULL)`

feltChanges('PostgreSQL', (policy) => {
  const limiter = createLimiter(policy, { store: postgresIn(pool, { prefix: 'felt' }), mode: 'exact', outage: 'closed', timeout: 5000 })
  const settle = async (): Promise<void> => {
    // One after another: what was sent before each of them is answered by then.
    for (let i = 0; i < 10; i++) await limiter.peek('k')
  }
  return { limiter, settle, stop: () => limiter.close() }
})

const gifted = (policy: Policy) =>
  createLimiter(policy, { store: postgresIn(pool, { prefix: 'gifts' }), mode: 'exact', outage: 'closed', timeout: 5000 })
feltGifts(
  'PostgreSQL',
  (policy) => ({ limiter: gifted(policy), other: gifted(policy) }),
  () => sleep(1300),
)

test('a denial while the clock is set back says how long, and leaves the state as it was, for when the clock is right again', async () => {
  const startMs = 1_789_000_000_500
  const policies = [
    tokenBucket({ limit: 10, window: '1s', name: 'rate back' }),
    fixedWindow({ limit: 10, window: '1s', name: 'window back' }),
  ]
  for (const policy of policies) {
    for (const backMs of [300, 1_000, 3_600_000]) {
      const { limiter, set } = limiterAtGivenTimes(pool, policy, { mode: 'exact' })
      const key = `back ${backMs}`
      set(startMs)
      assert.equal((await limiter.take(key, 10)).allowed, true)
      set(startMs - backMs)
      const denied = await limiter.take(key)
      assert.equal(denied.allowed, false)
      const retryAfterMs = backMs + (policy.algorithm === 'token-bucket' ? 100 : 500)
      assert.equal(denied.retryAfterMs, retryAfterMs, 'first')
      assert.equal((await limiter.take(key)).retryAfterMs, retryAfterMs, 'by a look')
      assert.equal((await limiter.peek(key)).retryAfterMs, retryAfterMs)
      set(startMs)
      assert.equal((await limiter.take(key)).allowed, false, `${policy.name}, ${backMs} ms`)
      set(startMs + 1_000)
      assert.equal((await limiter.take(key, 10)).allowed, true)
      limiter.close()
    }
  }
})

test('a denied take writes nothing and waits for no lock, and passes once there is room again', async () => {
  const policies = [
    tokenBucket({ limit: 2, window: '1s', name: 'denied-rate' }),
    fixedWindow({ limit: 2, window: '1s', name: 'denied-window' }),
  ]
  for (const policy of policies) {
    const { limiter, set } = limiterAtGivenTimes(pool, policy, { mode: 'exact' })
    set(1_789_000_000_000)
    assert.equal((await limiter.take('k', 2)).allowed, true)
    const rowOf = () => server.ask(`SELECT ctid::text, xmin::text FROM sluicegate WHERE convert_from(key, 'UTF8') LIKE '%${policy.name}:k'`)
    const before = await rowOf()
    assert.equal(before.length, 1)
    assert.equal((await limiter.take('k')).allowed, false)
    assert.equal((await limiter.take('k')).allowed, false)
    assert.deepEqual(
      (await Promise.all(['k', 'k', `k ${policy.name}`].map((key) => limiter.take(key)))).map(({ allowed }) => allowed),
      [false, false, true],
    )
    assert.deepEqual(
      (await rowOf()).map(({ ctid, xmin }) => [ctid, xmin]),
      before.map(({ ctid, xmin }) => [ctid, xmin]),
    )
    const own = new pg.Client({ connectionString: server.url })
    await own.connect()
    await own.query('BEGIN')
    await own.query('SELECT FROM sluicegate FOR UPDATE')
    // A statement that wants the lock has no answer while this one has it.
    assert.equal((await limiter.take('k')).allowed, false)
    await own.end()
    set(1_789_000_001_000)
    assert.equal((await limiter.take('k', 2)).allowed, true)
    limiter.close()
  }
})

test('a table of before is swapped, and once it has the columns of steps the same keys go on, whoever wrote them', async () => {
  await server.ask(OLD('rolling'))
  const rate = tokenBucket({ limit: 10, window: '1d', name: 'rate' })
  const window = fixedWindow({ limit: 10, window: '30d', name: 'window' })
  const make = () => [rate, window].map((policy) => over(policy, {}, pool, 'rolling'))
  const earlier = make()
  for (const limiter of earlier) {
    for (let i = 0; i < 3; i++) assert.equal((await limiter.take('k')).remaining, 9 - i)
    await limiter.block('banned', '1h')
  }
  await server.ask(postgresTable({ table: 'rolling' }))
  const later = make()
  for (const [i, limiter] of later.entries()) {
    assert.equal((await limiter.take('k', 2)).remaining, 5, `${i}: a step goes on from what was swapped`)
    assert.ok((await limiter.peek('banned')).retryAfterMs > 3_500_000)
    assert.equal((await earlier[i]?.take('k'))?.remaining, 4, `${i}: a swap goes on from what a step left`)
    assert.equal((await limiter.take('k')).remaining, 3, `${i}: and a step again`)
    assert.equal((await limiter.take('k', 5)).allowed, false)
  }
  const [row] = await server.ask<{ steps: string }>("SELECT count(*) AS steps FROM rolling WHERE value = '' AND seen IS NOT NULL")
  assert.ok(Number(row?.steps) >= 2)
  for (const limiter of [...earlier, ...later]) limiter.close()
})

function sideBySide(clock: ManualClock, policies: readonly [Policy, Policy]) {
  return policies.map((policy) => limiterAtGivenTimes(pool, policy, { mode: 'exact' }, 'sluicegate', clock)) as [
    GivenTimeLimiter,
    GivenTimeLimiter,
  ]
}

test('a faster version of a rate waits no longer than its own pace needs, and of two side by side a smaller one forgives nothing', async () => {
  const clock = manualClock(1_789_000_000_000)
  const [slow, fast] = sideBySide(clock, [
    tokenBucket({ limit: 10, window: '10s', burst: 50, name: 'rates' }),
    tokenBucket({ limit: 10, window: '1s', burst: 2, name: 'rates' }),
  ])
  assert.equal((await slow.limiter.take('k', 10)).allowed, true)
  // Of a key that owes more than its burst it tells the wait of a full one.
  assert.equal((await fast.limiter.take('k')).retryAfterMs, 100)
  clock.advance(899)
  assert.equal((await fast.limiter.take('k')).allowed, false)
  clock.advance(1)
  assert.equal((await fast.limiter.take('k')).allowed, true)
  let passed = 0
  for (let i = 0; i < 60; i++) {
    for (const { limiter } of [slow, fast, slow]) passed += (await limiter.take('k', 2)).allowed ? 2 : 0
    clock.advance(20)
  }
  assert.ok(passed <= 50 + 10 * 1.2, `${passed}`)
  for (const { limiter } of [slow, fast]) limiter.close()
})

test('versions with other windows side by side write nothing by what they deny, and neither waits for the end of the other one', async () => {
  const clock = manualClock(1_789_000_020_250)
  const [long, short] = sideBySide(clock, [
    fixedWindow({ limit: 100, window: '1m', name: 'windows' }),
    fixedWindow({ limit: 10, window: '1s', name: 'windows' }),
  ])
  const rowOf = () => server.ask("SELECT version::text FROM sluicegate WHERE convert_from(key, 'UTF8') LIKE '%windows:k'")
  assert.equal((await long.limiter.take('k', 100)).allowed, true)
  const before = await rowOf()
  for (let i = 0; i < 5; i++) {
    const denied = await short.limiter.take('k')
    assert.deepEqual([denied.allowed, denied.retryAfterMs], [false, 750 - i])
    assert.equal((await long.limiter.take('k')).allowed, false)
    clock.advance(1)
  }
  assert.deepEqual(await rowOf(), before)
  clock.advance(745)
  assert.equal((await long.limiter.take('k')).allowed, false, 'what the short one denied is not forgiven')
  assert.equal((await short.limiter.take('k', 10)).allowed, true, 'no longer than it said')
  for (const { limiter } of [long, short]) limiter.close()
})

test('of a swap whose answer is lost and on which a step followed nothing is charged again', async () => {
  const policy = fixedWindow({ limit: 10, window: '30d', name: 'lost' })
  const steps = over(policy)
  const store = postgresStore({ client: pool })
  const losing: CasStore = {
    name: 'losing',
    read: (key) => store.read(key),
    swap: async (swap) => {
      await store.swap(swap)
      await steps.take('k')
      throw new Error('the answer is lost')
    },
  }
  const swaps = createLimiter(policy, { store: casStore(losing), mode: 'exact', outage: 'closed', timeout: 5000 })
  assert.equal((await swaps.take('k')).source, 'outage')
  assert.equal((await steps.peek('k')).remaining, 8)
  for (const limiter of [swaps, steps]) limiter.close()
})

test('a peek of a key that others keep locked, beside other calls, does not take it for a new one', async () => {
  const limiter = over(fixedWindow({ limit: 10, window: '30d', name: 'peeked' }), { timeout: 300 })
  const keys = ['locked', 'a', 'b']
  for (const key of keys) await limiter.take(key, 10)
  const locker = new pg.Client({ connectionString: server.url })
  await locker.connect()
  await locker.query("BEGIN; SELECT FROM sluicegate WHERE position('peeked:locked'::bytea in key) > 0 FOR UPDATE")
  const [locked, ...others] = await Promise.all(keys.map((key) => limiter.peek(key)))
  assert.deepEqual([locked?.source, locked?.allowed], ['outage', false])
  assert.deepEqual(
    others.map(({ source, remaining }) => [source, remaining]),
    [
      ['store', 0],
      ['store', 0],
    ],
  )
  await locker.end()
  await until('it is read again', async () => (await limiter.peek('locked')).source === 'store')
  limiter.close()
})

test('a policy that is swapped with one of which the server decides sees its keys, and leaves them', async () => {
  const user = tokenBucket({ limit: 20, window: '1d', name: 'mixed' })
  const both = over(allOf([user, slidingLog({ limit: 100, window: '1d', name: 'log' })]))
  const alone = over(user)
  for (let i = 0; i < 4; i++) {
    assert.equal((await alone.take('k', 2)).remaining, 20 - 5 * i - 2)
    assert.equal((await both.take(['k', 'log'], 3)).parts?.[0]?.remaining, 20 - 5 * i - 5)
  }
  for (const limiter of [both, alone]) limiter.close()
})

test('what changes several keys changes each of them once, also where one is held or was swapped', async () => {
  for (const make of [fixedWindow, tokenBucket]) {
    const named = (name: string): Policy =>
      levels({ org: make({ limit: 3_000, window: '30d' }), user: make({ limit: 400, window: '30d' }) }, { name })
    for (const isOpen of [true, false]) {
      using limiter = over(named(`changed once ${isOpen}`), {}, pool)
      const key = (user: string) => ({ org: `${make.name} ${isOpen}`, user: `${make.name} ${isOpen} ${user}` })
      const left = async (user: string): Promise<readonly (number | undefined)[]> =>
        (await limiter.peek(key(user))).parts?.map(({ remaining }) => remaining) ?? []
      /** The value of the organisation is one that was swapped. */
      const swap = async () => {
        const work = await limiter.open(key('work'), { expect: 1 })
        if (!isOpen) await work.close(0)
        return work
      }
      await limiter.take(key('b'), 300)
      const first = await swap()
      await limiter.refund(key('b'), 50)
      await first.close(0)
      assert.deepEqual(await left('b'), [2_750, 150], 'a refund')
      const second = await swap()
      await limiter.penalize(key('c'), 100)
      await second.close(0)
      assert.deepEqual(await left('c'), [2_650, 300], 'a penalty')
    }
  }
})

test('what was reserved before work has opened comes back while that is open', async () => {
  for (const make of [fixedWindow, tokenBucket]) {
    const one = make({ limit: 1_000, window: '30d', name: 'reserved before' })
    const both = levels(
      { org: make({ limit: 3_000, window: '30d' }), user: make({ limit: 1_000, window: '30d' }) },
      { name: 'reserved before' },
    )
    for (const policy of [one, both]) {
      using limiter = over(policy, {}, pool)
      const key = policy === one ? make.name : [`${make.name} org`, `${make.name} user`]
      const [settled, cancelled] = [await limiter.reserve(key, 300, { maxWait: 0 }), await limiter.reserve(key, 200, { maxWait: 0 })]
      const work = await limiter.open(key, { expect: 100 })
      assert.equal((await settled.settle(120)).remaining, 580)
      assert.equal((await cancelled.cancel()).remaining, 780)
      await work.close(0)
      assert.equal((await limiter.peek(key)).remaining, 880)
    }
  }
})

test('takes of one user race for the budget of their tenant, by several processes, and all or nothing is charged', async () => {
  const tenant = fixedWindow({ limit: 50, window: '30d', name: 'tenant' })
  const user = tokenBucket({ limit: 4, window: '30d', name: 'user' })
  const fleet = Array.from({ length: 3 }, () => over(allOf([user, tenant])))
  const admitted = new Map<number, number>()
  const takes = Array.from({ length: 240 }, async (_, i) => {
    const id = i % 20
    const { allowed, source } = (await fleet[i % 3]?.take([`user ${id}`, 'acme'])) ?? {}
    assert.equal(source, 'store')
    if (allowed) admitted.set(id, (admitted.get(id) ?? 0) + 1)
  })
  await Promise.all(takes)
  const counts = [...admitted.values()]
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    50,
  )
  assert.ok(Math.max(...counts) <= 4)
  const left = await Promise.all([...admitted.keys()].map((id) => over(user).peek(`user ${id}`)))
  assert.deepEqual(
    left.map(({ remaining }) => 4 - remaining),
    counts,
  )
  for (const limiter of fleet) limiter.close()
})

test('calls for several keys in opposite orders, and in one statement with hostile keys, end without an outage', async () => {
  const parts = ['a', 'b'].map((name) => tokenBucket({ limit: 100_000, window: '1d', name }))
  const fleet = Array.from({ length: 2 }, () => over(allOf(parts)))
  const hostile = ["x'; DROP TABLE sluicegate; --", ',', '\u0000', '\ud800', '{"a":1}', 'k'.repeat(1024), '""', '\\x00', ' ', '😀']
  const takes = Array.from({ length: 200 }, (_, i) => {
    const [one, other] = [hostile[i % 10] as string, hostile[(i * 7 + 3) % 10] as string]
    return fleet[i % 2]?.take(i % 4 < 2 ? [one, other] : [other, one])
  })
  const decisions = await Promise.all(takes)
  assert.ok(decisions.every((decision) => decision?.allowed && decision.source === 'store'))
  const sums = await Promise.all(
    hostile.map(async (key) => (await fleet[0]?.peek([key, key]))?.parts?.map(({ remaining }) => 100_000 - remaining)),
  )
  assert.deepEqual(
    [0, 1].map((part) => sums.reduce((sum, each) => sum + (each?.[part] ?? 0), 0)),
    [200, 200],
  )
  for (const limiter of fleet) limiter.close()
})

for (const [form, policy] of [
  ['stepped', tokenBucket({ limit: 1e6, window: '1s', name: 'stuck' })],
  ['swapped', slidingLog({ limit: 10_000, window: '1d', name: 'stuck' })],
] as const) {
  test(`a row that another session keeps locked holds up no other key, and takes no more connections, ${form}`, async () => {
    const own = new pg.Pool({ connectionString: server.url, max: 10 })
    own.on('error', () => undefined)
    // A machine that stands still for less than that makes no outage of other keys.
    const limiter = over(policy, { timeout: 2500 }, own)
    const names = Array.from({ length: 20 }, (_, i) => `key-${i}-`)
    await Promise.all(names.map((key) => limiter.take(key)))
    const locker = new pg.Client({ connectionString: server.url })
    await locker.connect()
    await locker.query('BEGIN')
    await locker.query("SELECT FROM sluicegate WHERE position('key-7-'::bytea in key) > 0 FOR UPDATE")
    const outages = new Map<string, number>()
    let others = 0
    const latestMs = performance.now() + 30_000
    const isSeen = (): boolean => (others > 200 && outages.has('key-7-')) || performance.now() > latestMs
    const caller = async (key: string): Promise<void> => {
      while (!isSeen()) {
        const { source } = await limiter.take(key)
        if (source === 'outage') outages.set(key, (outages.get(key) ?? 0) + 1)
        else if (key !== 'key-7-') others++
      }
    }
    await Promise.all(names.map(caller))
    const [backends] = await server.ask<{ count: string }>("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    await locker.query('ROLLBACK')
    assert.deepEqual([...outages.keys()], ['key-7-'])
    assert.ok(others > 200, `${others} takes of other keys`)
    assert.ok(Number(backends?.count) <= 4, `${backends?.count} connections wait`)
    await until('the key is decided again', async () => (await limiter.take('key-7-')).source === 'store')
    limiter.close()
    await locker.end()
    await own.end()
  })
}

test('a transaction that was left open in a client of the pool is rolled back, and of a client inside one nothing is charged', async () => {
  const own = new pg.Pool({ connectionString: server.url, max: 1 })
  const policy = fixedWindow({ limit: 10, window: '30d', name: 'open' })
  const limiter = over(policy, {}, own)
  const seen = over(policy)
  for (const leak of ['BEGIN', 'BEGIN; SELECT 1 / 0']) {
    const leaked = await own.connect()
    await leaked.query(leak).catch(() => undefined)
    leaked.release()
    const { source, remaining } = await limiter.take('k')
    assert.equal(source, 'store')
    assert.equal((await seen.peek('k')).remaining, remaining, 'others see it')
  }
  await own.end()
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('BEGIN')
  const inside = createLimiter(policy, { store: casStore(postgresStore({ client })), mode: 'exact', outage: 'closed', timeout: 5000 })
  assert.equal((await inside.take('k')).source, 'outage')
  await client.query('ROLLBACK')
  assert.equal((await inside.take('k')).source, 'store')
  await client.end()
  for (const each of [limiter, seen, inside]) each.close()
})

test('pools of pg with pipelines, with binary results and with a time for queries take one budget, and a refusal leaves their connections whole', async () => {
  const policy = fixedWindow({ limit: 9, window: '30d', name: 'forms' })
  const forms = [{}, { pipeline: true }, { binary: true }, { query_timeout: 2000 }]
  const pools = forms.map((form) => new pg.Pool({ connectionString: server.url, max: 1, ...form }))
  const fleet = pools.map((own) => over(policy, {}, own))
  for (const [i, limiter] of fleet.entries()) {
    assert.deepEqual((await limiter.take('k', 2)).remaining, 7 - 2 * i, JSON.stringify(forms[i]))
    assert.equal((await limiter.take('k', 10)).allowed, false)
    const missing = over(policy, {}, pools[i], 'missing')
    assert.equal((await missing.take('k')).source, 'outage')
    assert.equal((await limiter.take('k', 10)).source, 'store')
    assert.equal(pools[i]?.totalCount, 1)
    for (const each of [missing, limiter]) each.close()
  }
  for (const own of pools) await own.end()
})

test('two drivers behind PgBouncer take one budget to the token, a locked key ends alone, and no connection keeps a lock_timeout', async () => {
  await using bouncer = await PgBouncerProcess.before(server, 6)
  const own = new pg.Pool({ connectionString: bouncer.url, max: 4 })
  const sql = postgres(bouncer.url, { max: 4, fetch_types: false })
  const policy = fixedWindow({ limit: 30, window: '30d', name: 'bounced' })
  const fleet = [own, sql].map((client) => over(policy, { timeout: 3000 }, client))
  const decisions = await Promise.all(Array.from({ length: 80 }, (_, i) => fleet[i % 2]?.take(`k${i % 4 === 3 ? 'other' : ''}`)))
  assert.ok(decisions.every((decision) => decision?.source === 'store'))
  assert.equal(decisions.filter((decision, i) => i % 4 < 3 && decision?.allowed).length, 30)
  const locker = new pg.Client({ connectionString: server.url })
  await locker.connect()
  await locker.query('BEGIN')
  await locker.query("SELECT FROM sluicegate WHERE key = 'sluicegate:fixed-window:bounced:k'::bytea FOR UPDATE")
  const quick = over(policy, { timeout: 300 }, own)
  const [locked, other] = await Promise.all([quick.take('k'), quick.take('kother')])
  assert.deepEqual([locked.source, other.source], ['outage', 'store'])
  await locker.query('ROLLBACK')
  await locker.end()
  const shown = await Promise.all(Array.from({ length: 4 }, () => own.query('SHOW lock_timeout')))
  assert.ok(shown.every(({ rows }) => rows[0].lock_timeout === '0'))
  for (const limiter of [...fleet, quick]) limiter.close()
  await own.end()
  await sql.end()
})
