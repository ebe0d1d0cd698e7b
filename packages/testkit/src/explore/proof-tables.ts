import { ENCODING_MUTANTS } from './encoding-mutants.js'
import { GROWTH_MUTANTS } from './growth-mutants.js'
import { KCAS_MUTANTS } from './kcas-mutants.js'
import type { Mutant } from './mutant.js'
import { TABLE_MUTANTS } from './table-mutants.js'

/** What a run of all explorations found; `npm run prove:schedules` writes it. */
export interface ProofResults {
  readonly node: string
  readonly schedules: number
  readonly seconds: number
  readonly usEach: number
  readonly violations: number
  readonly rows: readonly ProofRow[]
  readonly mutants: readonly { readonly name: string; readonly schedules?: number | undefined }[]
}

/** A search of one scenario in one encoding; without bounds it was at random. */
interface ProofRow {
  readonly scenario: string
  readonly encoding: string
  readonly preemptions?: number
  readonly deaths?: number
  readonly schedules: number
  readonly complete: boolean
}

/** The parts of docs/proof.md that a run fills, by name. */
export function proofTables(results: ProofResults): ReadonlyMap<string, string> {
  return new Map([
    ['figures', figures(results)],
    ['mutants', caught(results)],
  ])
}

/** A page with its parts filled, each between `<!-- proof:name -->` and `<!-- /proof -->`. */
export function withTables(page: string, tables: ReadonlyMap<string, string>): string {
  return page.replace(/<!-- proof:(\S+) -->\n[\s\S]*?<!-- \/proof -->/g, (_, name: string) => {
    const table = tables.get(name)
    if (table === undefined) throw new Error(`nothing is known of "${name}"`)
    return `<!-- proof:${name} -->\n\n${table}\n\n<!-- /proof -->`
  })
}

function figures({ node, schedules, seconds, usEach, violations, rows }: ProofResults): string {
  const atRandom = rows.filter(({ preemptions }) => preemptions === undefined)
  const scenarios = new Set(atRandom.map(({ scenario }) => scenario)).size
  const figures = `**${millions(schedules)} million schedules in ${seconds} s, ${usEach} microseconds each, ${violations} violations**`
  const bounded = rows.filter(({ preemptions }) => preemptions !== undefined)
  const lines = [...new Set(bounded.map(boundsOf))].map((bounds) => {
    const searches = bounded.filter((row) => boundsOf(row) === bounds)
    const complete = searches.filter((row) => row.complete).length
    return `| ${bounds} | ${searches.length} | ${complete} | ${millions(sum(searches))} |`
  })
  return [
    `One run on the build machine (2 shared cores, Node ${node}): ${figures}; ${scenarios} scenarios, ${atRandom.length} with their encodings.`,
    '',
    '| preemptions | stopped for good | searches | of them complete | million schedules |',
    '|---|---|---|---|---|',
    ...lines,
    `| any, at random | 0 or 1 | ${atRandom.length} | | ${millions(sum(atRandom))} |`,
  ].join('\n')
}

function boundsOf({ preemptions, deaths }: ProofRow): string {
  return `${preemptions} | ${deaths}`
}

/** How soon the planted faults of each kind were caught. */
function caught({ mutants: found }: ProofResults): string {
  const lines = KINDS.map(([kind, mutants]) => {
    const schedules = mutants.map(({ name }) => found.find((each) => each.name === name)?.schedules ?? Number.NaN).sort((a, b) => a - b)
    const most = schedules.at(-1) as number
    if (schedules.some(Number.isNaN)) return `| ${kind} | ${mutants.length} | not caught | |`
    return `| ${kind} | ${mutants.length} | ${schedules[Math.floor(schedules.length / 2)]} | ${most.toLocaleString('en')} |`
  })
  return ['| faults of | planted and caught | median schedules | most |', '|---|---|---|---|', ...lines].join('\n')
}

const KINDS: readonly (readonly [kind: string, mutants: readonly Mutant[]])[] = [
  ['the table, the loop, changes of policy (`table-mutants.ts`)', TABLE_MUTANTS],
  ['multi-word compare-and-swap (`kcas-mutants.ts`)', KCAS_MUTANTS],
  ['extensions (`encoding-mutants.ts`)', ENCODING_MUTANTS],
  ['growth, and new keys without room (`growth-mutants.ts`)', GROWTH_MUTANTS],
]

function sum(rows: readonly ProofRow[]): number {
  return rows.reduce((total, { schedules }) => total + schedules, 0)
}

function millions(schedules: number): string {
  return (schedules / 1e6).toFixed(1)
}
