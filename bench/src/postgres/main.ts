import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { postgresTable } from 'sluicegate/postgres'
import { FaultProxy, PostgresProcess } from 'sluicegate-testkit'
import { installRivals } from '../rivals.js'
import { callFor } from './callers.js'
import { CONTENDERS, type OpenContender } from './contenders.js'

// npm run bench:postgres: limits in PostgreSQL, beside those of other libraries, on one server.

const CALLERS = [1, 16, 256]
const KEYS = [1, 100_000]
const ADDED_MS = [0, 2]
const ROUNDS = 3
const ROUND_MS = 500
const PLENTY = 1_000_000_000
const BUDGET = 1_000

interface Row {
  readonly addedMs: number
  readonly keys: number
  readonly callers: number
  readonly name: string
  readonly perSecond: { readonly median: number; readonly least: number; readonly most: number }
}

async function measure(server: PostgresProcess): Promise<Row[]> {
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'latency', delayMs: 1 })
  const far = server.url.replace(`:${server.port}/`, `:${proxy.port}/`)
  const rows: Row[] = []
  for (const addedMs of ADDED_MS) {
    for (const open of CONTENDERS) {
      const contender = await open(addedMs === 0 ? server.url : far, PLENTY)
      for (const keys of KEYS) {
        for (const callers of CALLERS) {
          const rates: number[] = []
          for (let round = 0; round < ROUNDS; round++) {
            const keyOf = (): string => `user ${Math.floor(Math.random() * keys)}`
            const { decisions, ms } = await callFor(contender, callers, keyOf, ROUND_MS)
            rates.push(Math.round((decisions / ms) * 1000))
          }
          rates.sort((a, b) => a - b)
          const [least = 0, median = 0, most = 0] = rates
          rows.push({ addedMs, keys, callers, name: contender.name, perSecond: { median, least, most } })
          console.error(`${addedMs} ms, ${keys} keys, ${callers} callers: ${contender.name} ${median}/s (${least} to ${most})`)
        }
      }
      await contender.close()
    }
  }
  return rows
}

/** Two pools of connections, as of two processes, race for an unused key. */
async function overBudget(server: PostgresProcess): Promise<object[]> {
  const rows: object[] = []
  for (const open of CONTENDERS) {
    const pair = [await open(server.url, BUDGET), await open(server.url, BUDGET)]
    const counts = await Promise.all(pair.map((each) => callFor(each, 64, () => `hot ${each.name}`, 60_000, BUDGET * 2)))
    const admitted = counts.reduce((sum, each) => sum + each.admitted, 0)
    rows.push({ name: pair[0]?.name, budget: BUDGET, admitted })
    await Promise.all(pair.map((each) => each.close()))
  }
  return rows
}

/** A million exact decisions on few keys, autovacuum on. */
async function bloat(server: PostgresProcess, open: OpenContender): Promise<object> {
  await server.ask('TRUNCATE sluicegate')
  const contender = await open(server.url, PLENTY)
  let n = 0
  const { decisions, ms } = await callFor(contender, 256, () => `key ${n++ % 1000}`, 240_000, 1_000_000)
  await contender.close()
  const [row] =
    await server.ask(`SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS in_place, n_dead_tup::int AS dead, n_live_tup::int AS live,
    pg_relation_size('sluicegate')::int AS heap, pg_total_relation_size('sluicegate')::int AS total FROM pg_stat_user_tables WHERE relname = 'sluicegate'`)
  return { decisions, seconds: Math.round(ms / 1000), ...row }
}

async function sizeOfKey(server: PostgresProcess): Promise<object> {
  const sizeOf = async (table: string): Promise<object> => {
    const [row] = await server.ask<{ n: number; bytes: number }>(
      `SELECT (SELECT count(*) FROM ${table})::int AS n, pg_total_relation_size('${table}')::int AS bytes`,
    )
    return { keys: row?.n, bytesAKey: Math.round((row?.bytes ?? 0) / (row?.n ?? 1)) }
  }
  return { sluicegate: await sizeOf('sluicegate'), 'rate-limiter-flexible': await sizeOf('flexible') }
}

installRivals()
await using server = await PostgresProcess.start()
await server.ask(postgresTable())
const rows = await measure(server)
const size = await sizeOfKey(server)
const budget = await overBudget(server)
const million = await bloat(server, CONTENDERS[0] as OpenContender)
const machine = { node: process.version, cpu: cpus()[0]?.model, cores: cpus().length, postgres: 15 }
const results = { machine, rounds: ROUNDS, roundMs: ROUND_MS, rows, size, budget, million }
writeFileSync(fileURLToPath(new URL('../../results/postgres.json', import.meta.url)), `${JSON.stringify(results)}\n`)
console.log(JSON.stringify({ size, budget, million }, undefined, 2))
