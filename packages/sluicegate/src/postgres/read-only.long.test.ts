import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import postgres from 'postgres'
import { PostgresProcess, until } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow } from '../policy/single-policy.js'
import { postgres as postgresIn } from './postgres.js'
import { postgresStore } from './postgres-store.js'
import type { PostgresClient } from './sql-runner-for.js'
import { postgresTable } from './table-name.js'

// Servers that cannot be written: a standby, and one whose transactions are read-only.

const SWAP = { key: 'a', version: undefined, value: new Uint8Array([1]), ttlMs: 60_000 } as const
const POLICY = fixedWindow({ limit: 10, window: '1d', name: 'day' })

let primary: PostgresProcess
let standby: PostgresProcess
before(async () => {
  primary = await PostgresProcess.start()
  await primary.ask(`${postgresTable()}; ${postgresTable({ table: 'kept', logged: true })}`)
  standby = await PostgresProcess.start({ standbyOf: primary })
  await until('the standby has the tables', async () => {
    const [row] = await standby.ask<{ there: boolean }>(`SELECT to_regclass('kept') IS NOT NULL AS there`)
    return row?.there === true
  })
})
after(async () => {
  await standby.stop()
  await primary.stop()
})

async function withClients(url: string, use: (client: PostgresClient) => Promise<void>): Promise<void> {
  const pool = new pg.Pool({ connectionString: url, max: 2 })
  pool.on('error', () => undefined)
  const sql = postgres(url, { max: 2, onnotice: () => undefined })
  try {
    await use(pool)
    await use(sql)
  } finally {
    await pool.end()
    await sql.end({ timeout: 1 })
  }
}

test('a standby says which server it is, and what to give instead', () =>
  withClients(standby.url, async (client) => {
    const message = `PostgreSQL at 127.0.0.1:${standby.port} is read-only, a standby, and limits write: give the address of the primary`
    const kept = postgresStore({ client, table: 'kept' })
    assert.equal((await kept.read('a')).value, undefined)
    await assert.rejects(kept.swap(SWAP), { code: 'OUTAGE', message })
    await assert.rejects(kept.swapAll([SWAP, { ...SWAP, key: 'b' }]), { code: 'OUTAGE', message })
    // An unlogged table cannot even be read there.
    const unlogged = postgresStore({ client })
    await assert.rejects(unlogged.read('a'), { code: 'OUTAGE', message })
    await assert.rejects(unlogged.swap(SWAP), { code: 'OUTAGE', message })
  }))

test('takes over a standby are an outage whose error says so', () =>
  withClients(standby.url, async (client) => {
    for (const table of ['sluicegate', 'kept']) {
      const limiter = createLimiter(POLICY, { store: postgresIn(client, { table }), mode: 'exact', outage: 'closed', timeout: 10_000 })
      assert.equal((await limiter.take('a')).source, 'outage')
      await assert.rejects(Promise.resolve(limiter.penalize('a', 1)), {
        code: 'OUTAGE',
        message: /127\.0\.0\.1:\d+ is read-only, a standby/,
      })
      limiter.close()
    }
  }))

test('where transactions begin as read-only the error names the setting', () =>
  withClients(`${primary.url}?options=${encodeURIComponent('-c default_transaction_read_only=on')}`, async (client) => {
    await assert.rejects(postgresStore({ client }).swap(SWAP), {
      code: 'OUTAGE',
      message: new RegExp(`^PostgreSQL at 127.0.0.1:${primary.port} begins transactions as read-only, .*default_transaction_read_only`),
    })
  }))

test('a standby that is promoted is written, through the same connections; its unlogged table is empty', () =>
  withClients(standby.url, async (client) => {
    const table = 'kept'
    const limiter = createLimiter(POLICY, { store: postgresIn(client, { table }), mode: 'exact', outage: 'closed', timeout: 10_000 })
    await until('it is written', async () => {
      await standby.ask('SELECT pg_promote()').catch(() => undefined)
      return (await limiter.take('promoted')).source === 'store'
    })
    assert.equal((await postgresStore({ client }).read('a')).value, undefined)
    limiter.close()
  }))
