import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { FaultProxy, type PostgresProcess } from 'sluicegate-testkit'
import { summaryOf } from 'sluicegate-testkit/samples.js'
import { CONTENDERS, callFor, flexible, type OpenContender, PLENTY } from './contenders.js'
import type { BloatStep, KeySize, PostgresRow, RatesEffort } from './postgres-results.js'
import type { RateJob, RateReport } from './rate-process.js'

/** Several processes of one contender. */
class RateProcesses {
  readonly name: string
  private readonly children: readonly ChildProcess[]

  private constructor(name: string, children: readonly ChildProcess[]) {
    this.name = name
    this.children = children
  }

  static async open(contender: number, url: string, count: number): Promise<RateProcesses> {
    const children: ChildProcess[] = []
    let name = ''
    // One after another: two that make their tables at once may fail.
    for (let i = 0; i < count; i++) {
      const child = fork(fileURLToPath(new URL('./rate-process.js', import.meta.url)), [String(contender), url])
      children.push(child)
      name = await answerOf<string>(child)
    }
    return new RateProcesses(name, children)
  }

  /** All at once. Decisions of all of them a second, and the slowest 99 % of a process. */
  async run(job: RateJob): Promise<{ readonly perSecond: number; readonly p99Ms: number }> {
    const reports = await Promise.all(
      this.children.map((child) => {
        child.send(job)
        return answerOf<RateReport>(child)
      }),
    )
    return {
      perSecond: Math.round(reports.reduce((sum, { decisions, ms }) => sum + (decisions / ms) * 1000, 0)),
      p99Ms: Math.max(...reports.map(({ p99Ms }) => p99Ms)),
    }
  }

  async close(): Promise<void> {
    await Promise.all(
      this.children.map((child) => {
        const exit = once(child, 'exit')
        child.disconnect()
        return exit
      }),
    )
  }
}

async function answerOf<Answer>(child: ChildProcess): Promise<Answer> {
  const [answer] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`a process of the benchmark ended with ${code}`)
    }),
  ])
  return answer as Answer
}

const PROCESSES = [1, 3, 8]
const CALLERS = [1, 16, 256]
const KEYS = [1, 100, 10_000]
const ADDED_MS = [0, 2]
/** What runs for the first thousands of times is not compiled yet. */
const WARM_UP = { callers: 16, keys: 100, ms: 300 }

/** Decisions a second of all contenders, in each cell. */
export async function measureRates(server: PostgresProcess, effort: RatesEffort): Promise<PostgresRow[]> {
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'latency', delayMs: 1 })
  const far = server.urlAt(proxy.port)
  const rows: PostgresRow[] = []
  for (const addedMs of ADDED_MS) {
    for (const processes of PROCESSES) {
      const contenders: RateProcesses[] = []
      for (const i of CONTENDERS.keys()) contenders.push(await RateProcesses.open(i, addedMs === 0 ? server.url : far, processes))
      for (const each of contenders) await each.run(WARM_UP)
      for (const keys of KEYS) {
        for (const callers of CALLERS) rows.push(...(await sideBySide(contenders, effort, { addedMs, processes, keys, callers })))
      }
      for (const each of contenders) await each.close()
    }
  }
  return rows
}

/** All in turns, so that what else the machine does disturbs all alike. */
async function sideBySide(
  contenders: readonly RateProcesses[],
  { rounds, roundMs }: RatesEffort,
  cell: Pick<PostgresRow, 'addedMs' | 'processes' | 'keys' | 'callers'>,
): Promise<PostgresRow[]> {
  const { addedMs, processes, keys, callers } = cell
  const rates = contenders.map((): number[] => [])
  const slowest = contenders.map((): number[] => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, contender] of contenders.entries()) {
      const { perSecond, p99Ms } = await contender.run({ callers, keys, ms: roundMs })
      rates[i]?.push(perSecond)
      slowest[i]?.push(p99Ms)
    }
  }
  return contenders.map(({ name }, i) => {
    const perSecond = summaryOf(rates[i] as number[])
    const p99Ms = summaryOf(slowest[i] as number[]).median
    console.error(
      `${addedMs} ms, ${processes} x ${callers} callers, ${keys} keys: ${name} ${perSecond.median}/s, p99 ${p99Ms.toFixed(1)} ms`,
    )
    return { ...cell, name, perSecond, p99Ms }
  })
}

const TABLE_CALLERS = 256
const TABLE_KEYS = 1_000
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
    await callFor(contender, TABLE_CALLERS, () => `user ${n++}`, LONGEST_STEP_MS, SIZED)
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
    const made = await callFor(contender, TABLE_CALLERS, () => `key ${n++ % TABLE_KEYS}`, LONGEST_STEP_MS, decisions / STEPS)
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
