import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import { FaultProxy, longTest, PgBouncerProcess, PostgresProcess, shortOrLong, until } from 'sluicegate-testkit'
import { GreetingPostgres } from 'sluicegate-testkit/servers/greeting-postgres.js'
import type { CasStore } from '../store/cas-store.js'
import { postgresStore } from './postgres-store.js'
import type { PostgresClient } from './sql-runner-for.js'
import { postgresTable } from './table-name.js'

interface Open {
  readonly client: PostgresClient
  end(): Promise<unknown>
}

const CLIENTS: Readonly<Record<string, (url: string, max?: number) => Open>> = {
  'a pool of pg': (connectionString, max = 10) => {
    const client = new pg.Pool({ connectionString, max })
    client.on('error', () => undefined)
    return { client, end: () => client.end() }
  },
  postgres: (url, max = 10) => {
    const client = postgres(url, { max, onnotice: () => undefined })
    return { client, end: () => client.end({ timeout: 1 }) }
  },
}

let server: PostgresProcess
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(`${postgresTable()}; ${postgresTable({ table: 'kept', logged: true })}`)
})
after(() => server.stop())

const TTL = 60_000
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const textOf = (value: Uint8Array | undefined): string | undefined => value && new TextDecoder().decode(value)

/** Adds 1 to a number by swaps until one succeeds. Returns how many were lost */
async function increment(store: CasStore, key: string): Promise<number> {
  let { value, version } = await store.read(key)
  for (let lost = 0; ; lost++) {
    const next = bytes(String(Number(textOf(value) ?? 0) + 1))
    const { swapped, state } = await store.swap({ key, version, value: next, ttlMs: TTL })
    if (swapped) return lost
    value = state.value
    version = state.version
  }
}

async function incrementBoth(store: Required<CasStore>, keys: readonly string[]): Promise<void> {
  let states = await store.readAll(keys)
  for (;;) {
    const swaps = keys.map((key, i) => ({
      key,
      version: states[i]?.version,
      value: bytes(String(Number(textOf(states[i]?.value) ?? 0) + 1)),
      ttlMs: TTL,
    }))
    const outcome = await store.swapAll(swaps)
    if (outcome.swapped) return
    states = outcome.states
  }
}

for (const [name, open] of Object.entries(CLIENTS).slice(0, shortOrLong(1, 2))) {
  const withStore = async (use: (store: Required<CasStore>) => Promise<void>, url = server.url, max?: number): Promise<void> => {
    const { client, end } = open(url, max)
    try {
      await use(postgresStore({ client }))
    } finally {
      await end()
    }
  }

  test(`${name}: a value is read as it was swapped, with the server's clock, and a version that is not its own changes nothing`, () =>
    withStore(async (store) => {
      const key = `${name} plain`
      assert.equal((await store.read(key)).version, undefined)
      const first = await store.swap({ key, version: undefined, value: bytes('1'), ttlMs: TTL })
      assert.equal(first.swapped, true)
      const read = await store.read(key)
      assert.deepEqual([textOf(read.value), read.version], ['1', first.state.version])
      const [clock] = await server.ask<{ us: string }>('SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us')
      assert.ok(Math.abs(Number(clock?.us) - read.nowUs) < 60_000_000 && read.nowUs >= first.state.nowUs)
      const second = await store.swap({ key, version: read.version, value: bytes('2'), ttlMs: TTL })
      assert.equal(second.swapped, true)
      for (const version of [undefined, first.state.version]) {
        const late = await store.swap({ key, version, value: bytes('3'), ttlMs: TTL })
        assert.deepEqual([late.swapped, textOf(late.state.value), late.state.version], [false, '2', second.state.version])
      }
      const gone = await store.swap({ key: `${key} never`, version: '7', value: bytes('3'), ttlMs: TTL })
      assert.deepEqual([gone.swapped, gone.state.value, gone.state.version], [false, undefined, undefined])
    }))

  test(`${name}: of racing swaps none is lost, of one key and of several at once`, () =>
    withStore(async (store) => {
      const rounds = shortOrLong(10, 50)
      const keys = [`${name} b`, `${name} a`]
      await Promise.all(
        Array.from({ length: 10 }, async (_, i) => {
          for (let n = 0; n < rounds; n++) {
            await increment(store, `${name} race`)
            await incrementBoth(store, i % 2 === 0 ? keys : [...keys].reverse())
          }
        }),
      )
      const states = await store.readAll([`${name} race`, ...keys])
      assert.deepEqual(
        states.map(({ value }) => textOf(value)),
        [rounds * 10, rounds * 10, rounds * 10].map(String),
      )
    }))

  test(`${name}: several are swapped together or not at all`, () =>
    withStore(async (store) => {
      const [a, b] = [`${name} all a`, `${name} all b`]
      const first = await store.swap({ key: a, version: undefined, value: bytes('1'), ttlMs: TTL })
      const swaps = (version: string | undefined) => [
        { key: a, version, value: bytes('2'), ttlMs: TTL },
        { key: b, version: undefined, value: bytes('2'), ttlMs: TTL },
      ]
      const refused = await store.swapAll(swaps(undefined))
      assert.equal(refused.swapped, false)
      assert.deepEqual(
        refused.states.map(({ value }) => textOf(value)),
        ['1', undefined],
      )
      const done = await store.swapAll(swaps(String(first.state.version)))
      assert.equal(done.swapped, true)
      const read = await store.readAll([b, a])
      assert.deepEqual(
        read.map(({ value }) => textOf(value)),
        ['2', '2'],
      )
      assert.deepEqual(
        read.map(({ version }) => version),
        [done.states[1]?.version, done.states[0]?.version],
      )
    }))

  test(`${name}: any key is its own: NUL, lone surrogates, empty halves, 1,024 units that begin alike`, () =>
    withStore(async (store) => {
      const long = `${name}${'\u{ffff}'.repeat(1000)}`
      const keys = ['a\0b', 'a\0c', 'a', '\ud800', '\udc00', '\ufffd', '😀', '\\x61', "';--", `${long}1`, `${long}2`].map(
        (key) => `${key} ${name}`,
      )
      for (const key of keys)
        assert.equal((await store.swap({ key, version: undefined, value: bytes(key), ttlMs: TTL })).swapped, true, key)
      for (const key of keys) assert.deepEqual((await store.read(key)).value?.length, bytes(key).length)
      const read = await store.readAll(keys)
      assert.equal(new Set(read.map(({ version }) => version)).size, keys.length)
    }))

  test(`${name}: an expired value is none, and its version does not come back`, () =>
    withStore(async (store) => {
      const key = `${name} expired`
      const first = await store.swap({ key, version: undefined, value: bytes('1'), ttlMs: TTL })
      await server.ask(`UPDATE sluicegate SET expires = 1 WHERE version = ${String(first.state.version)}`)
      assert.deepEqual((await store.read(key)).version, undefined)
      const late = await store.swap({ key, version: first.state.version, value: bytes('2'), ttlMs: TTL })
      assert.deepEqual([late.swapped, late.state.version], [false, undefined])
      const anew = await store.swap({ key, version: undefined, value: bytes('1'), ttlMs: TTL })
      assert.equal(anew.swapped, true)
      assert.notEqual(anew.state.version, first.state.version)
      assert.equal((await store.swap({ key, version: first.state.version, value: bytes('2'), ttlMs: TTL })).swapped, false)
    }))

  for (const level of ['serializable', 'repeatable read']) {
    test(`${name}: nothing is lost or refused where the default of sessions is ${level}`, () =>
      withStore(
        async (store) => {
          const key = `${name} ${level}`
          const rounds = shortOrLong(5, 25)
          await Promise.all(
            Array.from({ length: 4 }, async () => {
              for (let n = 0; n < rounds; n++) await increment(store, key)
            }),
          )
          assert.equal(textOf((await store.read(key)).value), String(4 * rounds))
        },
        `${server.url}?options=${encodeURIComponent(`-c default_transaction_isolation=${level.replace(' ', '\\ ')}`)}`,
        4,
      ))
  }

  longTest(`${name}: behind PgBouncer in transaction mode all works, on any of its connections`, async () => {
    await using bouncer = await PgBouncerProcess.before(server, 3)
    await withStore(
      async (store) => {
        const others = Array.from({ length: 2 }, () => open(bouncer.url))
        const stores = [store, ...others.map(({ client }) => postgresStore({ client }))]
        await Promise.all(
          Array.from({ length: 12 }, async (_, i) => {
            for (let n = 0; n < 5; n++) await increment(stores[i % 3] as CasStore, `${name} bounced`)
          }),
        )
        assert.equal(textOf((await store.read(`${name} bounced`)).value), '60')
        await Promise.all(others.map(({ end }) => end()))
      },
      bouncer.url,
      4,
    )
  })

  test(`${name}: without the table the error has the statement that makes it`, async () => {
    const { client, end } = open(server.url)
    const store = postgresStore({ client, table: 'other' })
    await assert.rejects(store.read('a'), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'OUTAGE')
      assert.ok(error.message.includes(postgresTable({ table: 'other' })))
      return true
    })
    await end()
  })

  test(`${name}: a lost reply is an outage; the next call finds what was written, and goes on by itself`, async () => {
    await using proxy = await FaultProxy.before(server)
    const url = server.urlAt(proxy.port)
    await withStore(
      async (store) => {
        const key = `${name} lost`
        await increment(store, key)
        await increment(store, key)
        const state = await store.read(key)
        proxy.set({ kind: 'half-open' })
        const swap = store.swap({ key, version: state.version, value: bytes('3'), ttlMs: TTL })
        swap.catch(() => undefined)
        const other = open(server.url)
        const direct = postgresStore({ client: other.client })
        await until('it is written', async () => textOf((await direct.read(key)).value) === '3')
        await other.end()
        proxy.set({ kind: 'none' })
        await assert.rejects(swap, { name: 'StoreError', code: 'OUTAGE' })
        // `postgres` may lose a call that is made in the moment in which a connection breaks: no call waits for the one before it.
        let isRead = false
        await until('it is read', () => {
          store.read(key).then(
            ({ value }) => {
              isRead ||= textOf(value) === '3'
            },
            () => undefined,
          )
          return isRead
        })
      },
      url,
      1,
    )
  })

  longTest(`${name}: swaps remove expired rows in small steps, and no others`, async () => {
    const table = name === 'postgres' ? 'swept_b' : 'swept_a'
    await server.ask(postgresTable({ table }))
    await server.ask(
      `INSERT INTO ${table} SELECT i::text::bytea, i, CASE WHEN i % 10 = 0 THEN 9e15 ELSE 1 END, 'x' FROM generate_series(1, 1000) AS i`,
    )
    const { client, end } = open(server.url)
    const store = postgresStore({ client, table })
    let { version } = (await store.swap({ key: 'z', version: undefined, value: bytes('1'), ttlMs: TTL })).state
    await until('all are removed', async () => {
      for (let i = 0; i < 64; i++) version = (await store.swap({ key: 'z', version, value: bytes('1'), ttlMs: TTL })).state.version
      const [row] = await server.ask<{ n: string }>(`SELECT count(*) AS n FROM ${table}`)
      return row?.n === '101'
    })
    await end()
  })
}

test('a statement time-out and a client that is closed are outages', async () => {
  const client = new pg.Pool({ connectionString: server.url, max: 2, statement_timeout: 50 })
  const store = postgresStore({ client })
  await store.swap({ key: 'held', version: undefined, value: bytes('1'), ttlMs: TTL })
  const { version } = await store.read('held')
  const holder = new pg.Client({ connectionString: server.url })
  await holder.connect()
  await holder.query('BEGIN; SELECT FROM sluicegate FOR UPDATE')
  await assert.rejects(store.swap({ key: 'held', version, value: bytes('2'), ttlMs: TTL }), { code: 'OUTAGE' })
  await holder.end()
  assert.equal(textOf((await store.read('held')).value), '1')
  await client.end()
  await assert.rejects(store.read('held'), { code: 'OUTAGE' })
})

test('a server that greets a new connection and shuts down in the same moment is an outage, and ends no process', async () => {
  using ending = await GreetingPostgres.start({ shutsDown: true })
  const { client, end } = (CLIENTS['a pool of pg'] as (url: string) => Open)(ending.url)
  await assert.rejects(postgresStore({ client }).read('a'), { code: 'OUTAGE' })
  await end()
})

longTest('a client of pg alone does, one step after the other, and what is given up before it is sent is not run', async () => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const store = postgresStore({ client })
  const given = new AbortController()
  given.abort()
  const swap = store.swap({ key: 'alone', version: undefined, value: bytes('1'), ttlMs: TTL }, given.signal)
  await assert.rejects(swap, { code: 'OUTAGE' })
  assert.equal((await store.read('alone')).value, undefined)
  await Promise.all(Array.from({ length: 5 }, () => increment(store, 'alone')))
  assert.equal(textOf((await store.read('alone')).value), '5')
  await client.end()
})

longTest('swaps of a key leave no dead rows behind: rows are changed in place', async () => {
  const table = 'in_place'
  await server.ask(postgresTable({ table }))
  const client = new pg.Pool({ connectionString: server.url, max: 1 })
  const store = postgresStore({ client, table })
  let { version } = (await store.swap({ key: 'a', version: undefined, value: bytes('x'.repeat(50)), ttlMs: TTL })).state
  for (let i = 0; i < 2000; i++) version = (await store.swap({ key: 'a', version, value: bytes('x'.repeat(50)), ttlMs: TTL })).state.version
  await client.end()
  const [size] = await server.ask<{ bytes: string }>(`SELECT pg_relation_size('${table}') AS bytes`)
  assert.ok(Number(size?.bytes) <= 4 * 8192, size?.bytes)
})

longTest('an unlogged table is empty after a crash, and a logged one is as it was; an ordinary restart keeps both', async () => {
  await using own = await PostgresProcess.start()
  await own.ask(`${postgresTable()}; ${postgresTable({ table: 'kept', logged: true })}`)
  const values = async (): Promise<(string | undefined)[]> => {
    const client = new pg.Pool({ connectionString: own.url })
    client.on('error', () => undefined)
    const stores = [postgresStore({ client }), postgresStore({ client, table: 'kept' })]
    const states = await Promise.all(stores.map((store) => store.read('a')))
    if (states[0]?.value === undefined)
      for (const store of stores) await store.swap({ key: 'a', version: undefined, value: bytes('1'), ttlMs: TTL })
    await client.end()
    return states.map(({ value }) => textOf(value))
  }
  await values()
  await own.shutDown()
  await own.start()
  assert.deepEqual(await values(), ['1', '1'])
  await own.kill()
  await own.start()
  assert.deepEqual(await values(), [undefined, '1'])
})

test('mistakes are refused: another client, a table that needs quotes', () => {
  assert.throws(() => postgresStore({ client: {} as never }), { code: 'CLIENT_INVALID' })
  const client = new pg.Pool()
  for (const table of ['a b', '', 'a.b.c', '"a"', 'a;']) assert.throws(() => postgresStore({ client, table }), { code: 'OPTION_INVALID' })
})
