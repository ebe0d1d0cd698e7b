import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { oneEachLine } from 'sluicegate-testkit/markdown-tables.js'
import { type FailoverReport, isWithin } from './failover.js'
import { LOCAL_SHARE } from './fleet.js'
import { type PostgresChaosReport, postgresChaos } from './postgres-chaos.js'
import { clusterFailovers, mixedFailovers, sentinelFailovers } from './redis-failovers.js'
import { type ResizeReport, resize } from './resize.js'
import { type SharedOutageReport, sharedOutage } from './shared-outage.js'
import { RATE } from './subject.js'

/** Failovers under mixes of versions, and whether all stayed within the bound. */
export interface MixedReport extends FailoverReport {
  readonly seed: number
  readonly date: string
  readonly isWithin: boolean
}

/** What a run found, and the setting of all its subjects. */
export interface ChaosResults {
  readonly kind: 'chaos'
  readonly node: string
  readonly rate: { readonly limit: number; readonly burst: number }
  readonly localShare: number
  readonly failover: FailoverReport
  readonly mixed: MixedReport
  readonly sentinel: FailoverReport
  readonly resize: ResizeReport
  readonly outage: SharedOutageReport
  readonly postgres: PostgresChaosReport
}

const USAGE = `npm run chaos -- [NAME]... [--failovers N] [--seed N]

  Breaks real servers under load, and writes what came of it to lab/results. Then npm run plots makes docs/chaos.md from it.

  NAME            failover, mixed, sentinel, resize, outage or postgres; the results of the others stay as they are. Also --only NAME
  --failovers N   N of each kind instead of 20, 6, 5 and 3, and a short outage: a first look, nothing is written
  --seed N        which version of a mix each take asks; another in each run unless given`

const RESULTS = new URL('../../results/', import.meta.url)
const FILE = new URL('chaos.json', RESULTS)
const SLOTS = 5_000
/** Of the outage of a store that many processes share. */
const OUTAGE = { processes: 24, seconds: 20, policy: { limit: 240, windowMs: 1000, burst: 240 } } as const

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', multiple: true, default: [] },
    failovers: { type: 'string' },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const looks = values.failovers === undefined ? undefined : Number(values.failovers)

const progress = (line: string): void => console.log(line)
const SCENARIOS = {
  failover: () => clusterFailovers(looks ?? 20, progress),
  mixed,
  sentinel: () => sentinelFailovers(looks ?? 5, progress),
  resize: () => resize(SLOTS, progress),
  outage,
  postgres,
}

const names = [...values.only, ...positionals]

if (values.help || names.some((name) => !Object.hasOwn(SCENARIOS, name)) || (looks !== undefined && !(looks >= 1 && looks % 1 === 0))) {
  console.error(USAGE)
  process.exitCode = values.help ? 0 : 2
} else {
  await run()
}

async function mixed(): Promise<MixedReport> {
  const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed)
  progress(`seed ${seed}`)
  const report = await mixedFailovers(looks ?? 6, seed, progress)
  const stayed = isWithin(report)
  if (!stayed) process.exitCode = 1
  return { seed, date: new Date().toISOString().slice(0, 10), isWithin: stayed, ...report }
}

async function outage(): Promise<SharedOutageReport> {
  const report = await sharedOutage(OUTAGE.processes, looks === undefined ? OUTAGE.seconds : 5, OUTAGE.policy)
  if (report.errors > 0 || report.over > report.allowedOver || report.leastNodes < report.processes) process.exitCode = 1
  return report
}

async function postgres(): Promise<PostgresChaosReport> {
  const report = await postgresChaos(looks ?? 3, progress)
  if (!report.isWithin) process.exitCode = 1
  return report
}

async function run(): Promise<void> {
  let results = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as ChaosResults) : ({} as ChaosResults)
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    if (names.length > 0 && !names.includes(name)) continue
    console.log(`${name} ...`)
    const found = await scenario()
    if (looks !== undefined) {
      console.log(JSON.stringify(found, undefined, 1))
      continue
    }
    // Each as it comes: what fails later takes nothing back.
    const setting = {
      kind: 'chaos',
      node: process.version,
      rate: { limit: RATE.limit, burst: RATE.burst },
      localShare: LOCAL_SHARE,
    } as const
    results = { ...results, ...setting, [name]: found }
    mkdirSync(RESULTS, { recursive: true })
    writeFileSync(FILE, oneEachLine(results))
  }
  if (looks === undefined) console.log('npm run plots makes the tables and plots of docs/chaos.md from these results')
}
