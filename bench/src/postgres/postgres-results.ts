import type { Machine } from '../machine.js'
import { table } from '../markdown.js'
import type { Summary } from '../samples.js'

/** Decisions a second of one contender, in one cell. */
export interface PostgresRow {
  /** Added to each round trip. */
  readonly addedMs: number
  readonly keys: number
  readonly processes: number
  /** Of each process. */
  readonly callers: number
  readonly name: string
  /** Of all processes together. */
  readonly perSecond: Summary
  /** Of the slowest process, median of the rounds. */
  readonly p99Ms: number
}

/** How much of each cell is measured. */
export interface RatesEffort {
  readonly rounds: number
  readonly roundMs: number
}

/** What passed of a budget for which two pools raced. */
export interface BudgetRow {
  readonly name: string
  readonly budget: number
  readonly admitted: number
}

export interface KeySize {
  readonly keys: number
  readonly bytesAKey: number
}

/** The table after a number of decisions. */
export interface BloatStep {
  readonly decisions: number
  readonly seconds: number
  readonly updates: number
  /** Updates that needed no new entry of the index. */
  readonly inPlace: number
  readonly live: number
  readonly dead: number
  readonly vacuums: number
  readonly tableKiB: number
  /** With its index. */
  readonly allKiB: number
}

/** What `npm run bench:postgres` found. */
export interface PostgresResults {
  readonly kind: 'postgres'
  readonly machine: Machine
  readonly effort: RatesEffort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly rows: readonly PostgresRow[]
  readonly budget: readonly BudgetRow[]
  readonly size: Readonly<Record<string, KeySize>>
  readonly bloat: readonly BloatStep[]
}

/** The parts of docs/postgres.md, by the names of their places. */
export function postgresMarkdownParts(results: Partial<PostgresResults>): ReadonlyMap<string, string> {
  const parts = new Map<string, string>()
  if (results.rows !== undefined) parts.set('postgres', ratesText(results as PostgresResults))
  if (results.bloat !== undefined) parts.set('postgres-bloat', bloatTable(results.bloat))
  return parts
}

function ratesText({ machine, effort, loadBefore, loadAfter, rows }: PostgresResults): string {
  const names = [...new Set(rows.map(({ name }) => name))]
  const cellOf = ({ addedMs, processes, keys, callers }: PostgresRow): string => `${addedMs} ms|${processes}|${callers}|${count(keys)}`
  const cells = [...new Set(rows.map(cellOf))].map((cell) => [
    ...cell.split('|'),
    ...names.map((name) => {
      const found = rows.find((row) => row.name === name && cellOf(row) === cell)
      return found === undefined ? '' : `${count(found.perSecond.median)} (${found.p99Ms.toFixed(1)})`
    }),
  ])
  const { cpu, cores, node } = machine
  const { rounds, roundMs } = effort
  const where = `Median of ${rounds} rounds of ${roundMs / 1000} s, p99 in milliseconds; ${cpu}, ${cores} cores, Node ${node}, PostgreSQL 15, load average ${loadBefore} before and ${loadAfter} after.`
  return `${table(['added', 'processes', 'callers each', 'keys', ...names], cells)}\n\n${where}`
}

function bloatTable(steps: readonly BloatStep[]): string {
  const head = ['decisions', 'after, s', 'updates', 'in place', 'dead rows', 'runs of autovacuum', 'table, KiB', 'with index']
  const rows = steps.map(({ decisions, seconds, updates, inPlace, dead, vacuums, tableKiB, allKiB }) =>
    [decisions, seconds, updates, inPlace, dead, vacuums, tableKiB, allKiB].map(count),
  )
  return table(head, rows)
}

function count(number: number): string {
  return Math.round(number).toLocaleString('en')
}
