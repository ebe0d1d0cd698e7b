import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import postgresJs from 'postgres'
import { PostgresProcess } from 'sluicegate-testkit'
import { createLimiter, fixedWindow, manualClock } from '../index.js'
import { createLedger, type LedgerRecord, replayedLedger } from '../ledger/index.js'
import { postgresLedger, postgresLedgerTable } from './postgres-ledger.js'
import type { PostgresClient } from './sql-runner-for.js'

const START_MS = 1_789_000_020_000

let server: PostgresProcess
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(postgresLedgerTable())
})
after(() => server.stop())

const CLIENTS: Readonly<Record<string, (url: string) => { readonly client: PostgresClient; end(): Promise<unknown> }>> = {
  pg: (connectionString) => {
    const client = new pg.Pool({ connectionString, max: 2 })
    return { client, end: () => client.end() }
  },
  postgres: (url) => {
    const client = postgresJs(url, { max: 2, onnotice: () => undefined })
    return { client, end: () => client.end({ timeout: 1 }) }
  },
}

for (const [name, open] of Object.entries(CLIENTS)) {
  test(`a table of PostgreSQL, by ${name}: a row a record, never one twice, and adding them up gives the state`, async (t) => {
    const { client, end } = open(server.url)
    t.after(end)
    const reader = new pg.Pool({ connectionString: server.url, max: 1 })
    t.after(() => reader.end())
    await reader.query('TRUNCATE sluicegate_ledger')
    const sink = postgresLedger(client)
    const sent: LedgerRecord[] = []
    const clock = manualClock(START_MS)
    const append: typeof sink.append = (records) => {
      sent.push(...records)
      return sink.append(records)
    }
    const ledger = createLedger({ append }, { clock })
    const limiter = createLimiter(fixedWindow({ limit: 10_000, window: 'day', name: "O'Neill" }), { clock, ledger })
    const work = limiter.open('"ada"', { expect: 100 })
    for (let i = 0; i < 1_200; i++) limiter.take('"ada"')
    work.close(250)
    await ledger.close()
    assert.deepEqual(ledger.stats(), { appended: 1_202, lost: 0, waiting: 0, open: 0 })
    // A batch whose answer was lost, sent again by hand.
    await sink.append(sent)
    const { rows } = await reader.query('SELECT * FROM sluicegate_ledger ORDER BY writer, number')
    assert.equal(rows.length, 1_202)
    assert.equal(rows[0].at.getTime(), START_MS)
    assert.deepEqual(replayedLedger(rows), [{ policy: "O'Neill", key: '"ada"', spent: 1_450, over: 0, held: 0 }])
    assert.equal(limiter.peek('"ada"').remaining, 10_000 - 1_450)
  })
}
