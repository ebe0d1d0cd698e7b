import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { oneEachLine } from '../markdown-tables.js'
import type { Exploration } from './explore.js'
import { ExploredModules } from './explored-modules.js'
import { hunt } from './hunt.js'
import { MUTANTS } from './mutants.js'
import { type ProofResults, type ProofSearch, proofTables, searchesSummed, withTables } from './proof-tables.js'
import { inEachEncoding, type Scenario } from './scenario.js'
import { SCENARIOS } from './scenarios.js'
import type { SearchBounds } from './search.js'

// The whole proof by exploration: every scenario, in each of its encodings, to three preemptions, to two with a thread
// stopped for good, as far as it goes to four, from both ends, and at random beyond; then the faults that it has to find. Writes
// the results and fills docs/proof.md. `--quick` cuts every search short and writes nothing: to see that all of it runs.

const QUICK = process.argv.includes('--quick')
const MOST = QUICK ? 2_000 : 80_000
const MOST_OF_DEEP = MOST / 4
const WALKS = { walks: MOST / 8, seed: 1 }
const MOST_OF_MUTANTS = 1_000_000
const SEARCHES: readonly SearchBounds[] = [
  { preemptions: 3, deaths: 0, most: MOST },
  { preemptions: 2, deaths: 1, most: MOST },
  { preemptions: 1, deaths: 2, most: MOST },
  { preemptions: 4, deaths: 0, most: MOST_OF_DEEP },
  { preemptions: 3, deaths: 1, most: MOST_OF_DEEP },
]
const RESULTS = new URL('../../results/', import.meta.url)
const PAGE = new URL('../../../../docs/proof.md', import.meta.url)

type Row = Exploration & ProofSearch

const modules = await ExploredModules.compile(SCENARIOS)
const rows: Row[] = []
let total = 0
let seconds = 0
for (const scenario of SCENARIOS) {
  for (const asked of inEachEncoding(scenario)) {
    for (const row of proved(asked)) {
      rows.push(row)
      total += row.schedules
      seconds += row.seconds
      if (row.violation !== undefined) console.log(JSON.stringify(row.violation, undefined, 2))
    }
  }
  console.log(`${(total / 1e6).toFixed(1)} million schedules, ${seconds.toFixed(0)} s: ${scenario.name}`)
}
const mutants = await caught()
const violations = rows.filter(({ violation }) => violation !== undefined)
report()
if (violations.length > 0 || mutants.some((mutant) => mutant.schedules === undefined)) process.exitCode = 1

function proved(scenario: Scenario): Row[] {
  return [...searched(scenario), { ...modules.explore(scenario, WALKS), scenario: `${scenario.name}, at random` }]
}

function searched(scenario: Scenario): Row[] {
  return SEARCHES.flatMap((bounds) => {
    const forwards = { ...modules.explore(scenario, bounds), ...named(scenario, bounds) }
    if (forwards.complete || forwards.violation !== undefined) return [forwards]
    // Cut short, a search has seen little of the schedules in which the last thread begins.
    const turned = { ...scenario, name: `${scenario.name}, last first`, threads: scenario.threads.toReversed() }
    return [forwards, { ...modules.explore(turned, bounds), ...named(turned, bounds) }]
  })
}

function named({ name }: Scenario, { preemptions, deaths }: SearchBounds): { scenario: string; preemptions: number; deaths: number } {
  return { scenario: name, preemptions, deaths }
}

async function caught(): Promise<{ name: string; scenario: string; preemptions: number; deaths: number; schedules: number | undefined }[]> {
  const found = []
  for (const mutant of MUTANTS) {
    const { name, scenario, preemptions, deaths } = mutant
    const { violation, schedules } = await hunt(mutant, MOST_OF_MUTANTS)
    found.push({ name, scenario, preemptions, deaths, schedules: violation === undefined ? undefined : schedules })
  }
  return found
}

function report(): void {
  const column = Math.max(...mutants.map(({ name }) => name.length))
  for (const { name, scenario, preemptions, deaths, schedules } of mutants) {
    const bounds = `${preemptions} preemptions, ${deaths} stopped`
    console.log(`${name.padEnd(column)}  ${schedules === undefined ? 'NOT FOUND' : `${schedules} schedules`}  (${scenario}; ${bounds})`)
  }
  const complete = rows.filter((row) => row.complete).length
  console.log(`${complete} of ${rows.length} searches ran every schedule within their bounds`)
  const usEach = (seconds * 1e6) / total
  console.log(`${total} schedules in ${seconds.toFixed(0)} s, ${usEach.toFixed(2)} microseconds each; ${violations.length} violations`)
  if (QUICK) return
  mkdirSync(RESULTS, { recursive: true })
  const summary = {
    command: 'npm run prove:schedules',
    node: process.version,
    schedules: total,
    seconds: Math.round(seconds),
    usEach: Number(usEach.toFixed(2)),
    violations: violations.length,
  }
  const results: ProofResults = { ...summary, ...searchesSummed(rows), mutants }
  writeFileSync(new URL('schedules.json', RESULTS), oneEachLine(results))
  writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), proofTables(results)))
}
