import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { postgresTable } from 'sluicegate/postgres'
import { PostgresProcess } from 'sluicegate-testkit'
import { givenOptions, RESULTS } from '../committed-form.js'
import { load, machine } from '../machine.js'
import { chosenNames } from '../question.js'
import { printReport } from '../report.js'
import { installRivals } from '../rivals.js'
import { CONTENDERS, callFor, TABLES } from './contenders.js'
import { measureBloat, measureRates, measureSize } from './measure-rates.js'
import { type BudgetRow, type PostgresResults, postgresReport, type RatesEffort } from './postgres-results.js'

const BUDGET = 1_000
const CALLERS = 64
const LONGEST_MS = 60_000

/** Two pools of connections, as of two processes, race for an unused key. */
async function measureBudget(server: PostgresProcess): Promise<BudgetRow[]> {
  const rows: BudgetRow[] = []
  for (const open of CONTENDERS) {
    const pair = [await open(server.url, BUDGET), await open(server.url, BUDGET)]
    const counts = await Promise.all(pair.map((each) => callFor(each, CALLERS, () => `hot ${each.name}`, LONGEST_MS, BUDGET * 2)))
    const admitted = counts.reduce((sum, each) => sum + each.admitted, 0)
    rows.push({ name: pair[0]?.name ?? '', budget: BUDGET, admitted })
    await Promise.all(pair.map((each) => each.close()))
  }
  return rows
}

/** As servers do unless told otherwise, a commit waits until the log is on the disk. Eight processes of each contender have eight connections. */
const SETTINGS = { fsync: 'on', full_page_writes: 'on', max_connections: '400' }

const PARTS = ['rates', 'budget', 'size', 'bloat'] as const

const EFFORT: RatesEffort = { rounds: 3, roundMs: 500 }
const QUICK: RatesEffort = { rounds: 1, roundMs: 200 }
const DECISIONS = 1_000_000
const FEW_DECISIONS = 20_000

const USAGE = `npm run bench:postgres -- [--quick] [--part PART]... [--json FILE]

  Limits in PostgreSQL, beside those of other libraries, on one server that it starts.

  --quick      short runs: a first look, no figures to quote
  --part PART  one of them, may be given again: ${PARTS.join(', ')}; the results of the others stay as they are
  --json FILE  where the results go; default bench/results/postgres.json, with --quick bench/results/local/postgres.json

  rates        decisions a second of 1 to 8 processes with 1 to 256 callers each, 1 to 10,000 keys, on loopback and with 2 ms added
  budget       what passes of a budget for which two pools race
  size         bytes a key in the table
  bloat        a million exact decisions on 1,000 keys, autovacuum on`

const values = givenOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  part: { type: 'string', multiple: true, default: [] },
  json: { type: 'string' },
})

await run()

async function run(): Promise<void> {
  const parts = chosenNames('part', values.part, PARTS, USAGE)
  const file = values.json ?? `${RESULTS}${values.quick ? 'local/' : ''}postgres.json`
  const effort = values.quick ? QUICK : EFFORT
  if (parts.includes('rates') || parts.includes('budget') || parts.includes('size')) installRivals()
  await using server = await PostgresProcess.start({ settings: SETTINGS })
  for (const table of TABLES) await server.ask(postgresTable(table))
  let results = { kind: 'postgres', ...(existsSync(file) && JSON.parse(readFileSync(file, 'utf8'))) } as PostgresResults
  const progress = (line: string): void => console.error(line)
  const measures: Record<(typeof PARTS)[number], () => Promise<Partial<PostgresResults>>> = {
    rates: async () => {
      const loadBefore = load()
      const rows = await measureRates(server, effort)
      return { machine: machine(), effort, loadBefore, loadAfter: load(), rows }
    },
    budget: async () => ({ budget: await measureBudget(server) }),
    size: async () => ({ size: await measureSize(server) }),
    bloat: async () => ({ bloat: await measureBloat(server, values.quick ? FEW_DECISIONS : DECISIONS, progress) }),
  }
  for (const part of parts) {
    console.error(`${part} ...`)
    results = { ...results, ...(await measures[part]()) }
    // Each as it comes: what fails later takes nothing back.
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${JSON.stringify(results)}\n`)
  }
  printReport(postgresReport(results))
  console.log(`written to ${file}`)
}
