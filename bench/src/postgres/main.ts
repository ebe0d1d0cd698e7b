import { readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { postgresTable } from 'sluicegate/postgres'
import { FaultProxy, PostgresProcess } from 'sluicegate-testkit'
import { installRivals } from '../rivals.js'
import { callFor } from './callers.js'
import { CONTENDERS, type Contender, type OpenContender } from './contenders.js'
import { type PostgresResults, type PostgresRow, postgresMarkdownParts } from './postgres-results.js'

// npm run bench:postgres: limits in PostgreSQL, beside those of other libraries, on one server.

const CALLERS = [1, 16, 256]
const KEYS = [1, 100_000]
const ADDED_MS = [0, 2]
const ROUNDS = 3
const ROUND_MS = 500
const PLENTY = 1_000_000_000
const BUDGET = 1_000

async function measure(server: PostgresProcess): Promise<PostgresRow[]> {
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'latency', delayMs: 1 })
  const far = server.url.replace(`:${server.port}/`, `:${proxy.port}/`)
  const rows: PostgresRow[] = []
  for (const addedMs of ADDED_MS) {
    const contenders = await Promise.all(CONTENDERS.map((open) => open(addedMs === 0 ? server.url : far, PLENTY)))
    for (const keys of KEYS) {
      for (const callers of CALLERS) rows.push(...(await sideBySide(contenders, { addedMs, keys, callers })))
    }
    await Promise.all(contenders.map((each) => each.close()))
  }
  return rows
}

/** All in turns, so that what else the machine does disturbs all alike. */
async function sideBySide(
  contenders: readonly Contender[],
  cell: Pick<PostgresRow, 'addedMs' | 'keys' | 'callers'>,
): Promise<PostgresRow[]> {
  const { addedMs, keys, callers } = cell
  const rates = contenders.map((): number[] => [])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, contender] of contenders.entries()) {
      const { decisions, ms } = await callFor(contender, callers, () => `user ${Math.floor(Math.random() * keys)}`, ROUND_MS)
      rates[i]?.push(Math.round((decisions / ms) * 1000))
    }
  }
  return contenders.map(({ name }, i) => {
    const [least = 0, median = 0, most = 0] = (rates[i] ?? []).sort((a, b) => a - b)
    console.error(`${addedMs} ms, ${keys} keys, ${callers} callers: ${name} ${median}/s (${least} to ${most})`)
    return { ...cell, name, perSecond: { median, least, most } }
  })
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
const file = fileURLToPath(new URL('../../results/postgres.json', import.meta.url))
const machine = { node: process.version, cpu: cpus()[0]?.model ?? '', cores: cpus().length, load: loadavg()[0] ?? 0, postgres: 15 }
// With --rates only these are measured, and the rest stays as it was saved.
const rest = process.argv.includes('--rates')
  ? (({ size, budget, million }) => ({ size, budget, million }))(JSON.parse(readFileSync(file, 'utf8')))
  : { size: await sizeOfKey(server), budget: await overBudget(server), million: await bloat(server, CONTENDERS[0] as OpenContender) }
const results: PostgresResults = { kind: 'postgres', machine, rounds: ROUNDS, roundMs: ROUND_MS, rows, ...rest }
writeFileSync(file, `${JSON.stringify(results)}\n`)
console.log(postgresMarkdownParts(results).get('postgres'))
console.log(JSON.stringify(rest, undefined, 2))
