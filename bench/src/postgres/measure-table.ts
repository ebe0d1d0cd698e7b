import type { PostgresProcess } from 'sluicegate-testkit'
import { callFor } from './callers.js'
import { CONTENDERS, flexible, type OpenContender, PLENTY } from './contenders.js'
import type { BloatStep, KeySize } from './postgres-results.js'

const CALLERS = 256
const KEYS = 1_000
const STEPS = 4
const LONGEST_STEP_MS = 600_000
const SIZED = 10_000

/** What a key takes in the table, its index included, of each library that has one of its own. */
export async function measureSize(server: PostgresProcess): Promise<Record<string, KeySize>> {
  const sizes: Record<string, KeySize> = {}
  const ours = CONTENDERS[0] as OpenContender
  for (const [open, table] of [
    [ours, 'sluicegate'],
    [flexible, 'flexible'],
  ] as const) {
    const contender = await open(server.url, PLENTY)
    await server.ask(`TRUNCATE ${table}`)
    let n = 0
    await callFor(contender, CALLERS, () => `user ${n++}`, LONGEST_STEP_MS, SIZED)
    await contender.close()
    const [row] = await server.ask<{ n: number; bytes: number }>(
      `SELECT (SELECT count(*) FROM ${table})::int AS n, pg_total_relation_size('${table}')::int AS bytes`,
    )
    sizes[contender.name] = { keys: row?.n ?? 0, bytesAKey: Math.round((row?.bytes ?? 0) / (row?.n ?? 1)) }
  }
  return sizes
}

/** Exact decisions on few keys, autovacuum on: what the table has after each part of them. */
export async function measureBloat(server: PostgresProcess, decisions: number, progress: (line: string) => void): Promise<BloatStep[]> {
  await server.ask('TRUNCATE sluicegate')
  await server.ask('SELECT pg_stat_reset()')
  const contender = await (CONTENDERS[0] as OpenContender)(server.url, PLENTY)
  const steps: BloatStep[] = []
  let [n, done, seconds] = [0, 0, 0]
  for (let step = 0; step < STEPS; step++) {
    const made = await callFor(contender, CALLERS, () => `key ${n++ % KEYS}`, LONGEST_STEP_MS, decisions / STEPS)
    done += made.decisions
    seconds += made.ms / 1000
    steps.push({ decisions: done, seconds: Math.round(seconds), ...(await tableOf(server)) })
    progress(JSON.stringify(steps.at(-1)))
  }
  await contender.close()
  return steps
}

/** Figures of the server reach its views up to a second after what they count. */
async function tableOf(server: PostgresProcess): Promise<Omit<BloatStep, 'decisions' | 'seconds'>> {
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const [row] = await server.ask<Omit<BloatStep, 'decisions' | 'seconds'>>(
    `SELECT n_tup_upd::int AS updates, n_tup_hot_upd::int AS "inPlace", n_live_tup::int AS live, n_dead_tup::int AS dead,
      autovacuum_count::int AS vacuums, (pg_relation_size(relid) / 1024)::int AS "tableKiB", (pg_total_relation_size(relid) / 1024)::int AS "allKiB"
    FROM pg_stat_user_tables WHERE relname = 'sluicegate'`,
  )
  if (row === undefined) throw new Error('the server has no such table')
  return row
}
