import { fileURLToPath } from 'node:url'
import { WorkerRuntime } from 'sluicegate-testkit/workers/kept-storage.js'
import { givenOptions, QUICK_RESULTS, RAW } from '../committed-form.js'
import type { LineProcess } from '../line-process.js'
import { load, machine } from '../machine.js'
import { startNode } from '../measure.js'
import type { Load, LoadJob } from '../middleware/load.js'
import { printReport, writeResults } from '../report.js'
import { type WorkersEffort, type WorkersResults, type WorkersRow, workersReport } from '../small-tables.js'
import { WAYS, type Way, WITH_OBJECT, WORKER } from './worker.js'

const LOAD = fileURLToPath(new URL('../middleware/load-subject.js', import.meta.url))
const KEYS = [1, 100]
const FULL: WorkersEffort = { rounds: 7, roundMs: 1_000, connections: 32 }
const QUICK: WorkersEffort = { rounds: 2, roundMs: 300, connections: 32 }

const USAGE = `npm run bench:workers -- [--quick] [--json FILE]

  Limits in a Worker, in Cloudflare's own runtime on this machine, beside a plain counter in a Durable Object.

  --quick      short runs: a first look, no figures to quote
  --json FILE  where the results go; default bench/results/local/workers.json, with --quick bench/results/local/quick/workers.json`

const values = givenOptions(USAGE, { quick: { type: 'boolean', default: false }, json: { type: 'string' } })

await run()

async function run(): Promise<void> {
  const file = values.json ?? `${values.quick ? QUICK_RESULTS : RAW}workers.json`
  const effort = values.quick ? QUICK : FULL
  const loadBefore = load()
  const rows = await measured(effort)
  const results: WorkersResults = { kind: 'workers', machine: machine(), effort, loadBefore, loadAfter: load(), rows }
  printReport(workersReport(results))
  writeResults(file, results)
}

async function measured(effort: WorkersEffort): Promise<WorkersRow[]> {
  const runtime = await WorkerRuntime.start({ contents: WORKER, resolveDir: fileURLToPath(new URL('.', import.meta.url)) })
  const asker = await startNode('load', LOAD, null)
  try {
    const rows: WorkersRow[] = []
    for (const keys of KEYS) rows.push(...(await inTurns(runtime, asker, effort, keys)))
    return rows
  } finally {
    await asker.stop()
    await runtime.stop()
  }
}

/** All ways in turns, so that what else the machine does disturbs all alike. The first round is not counted. */
async function inTurns(runtime: WorkerRuntime, asker: LineProcess, effort: WorkersEffort, keys: number): Promise<WorkersRow[]> {
  const { rounds, roundMs, connections } = effort
  const rows = WAYS.map((way) => ({ way, keys, perSecond: [] as number[], calls: [] as number[] }))
  for (let round = 0; round <= rounds; round++) {
    for (const { way, perSecond, calls } of rows) {
      // An object idle for 10 s is evicted: all are in memory.
      if (WITH_OBJECT.includes(way)) for (let key = 0; key < keys; key++) await runtime.fetch(`${pathOf(way, keys)}/${key}`)
      const before = await objectCalls(runtime)
      const job: LoadJob = { port: runtime.port, path: pathOf(way, keys), ms: roundMs, connections, manyClients: false }
      const { requests, allowed, elapsedMs } = (await asker.ask(JSON.stringify(job))) as Load
      if (allowed < requests) throw new Error(`${requests - allowed} of ${requests} requests failed: ${way}`)
      if (round === 0) continue
      perSecond.push((requests / elapsedMs) * 1000)
      calls.push(((await objectCalls(runtime)) - before) / allowed)
    }
    console.error(`${keys} keys, round ${round} of ${rounds}`)
  }
  return rows
}

function pathOf(way: Way, keys: number): string {
  return `/${encodeURIComponent(way)}/${keys}`
}

async function objectCalls(runtime: WorkerRuntime): Promise<number> {
  return (await (await runtime.fetch('/calls')).json()) as number
}
