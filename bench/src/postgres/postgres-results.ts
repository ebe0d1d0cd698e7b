import type { Summary } from 'sluicegate-testkit/samples.js'
import type { Machine } from '../machine.js'
import type { Report } from '../report.js'
import { tableOf, whole } from '../table.js'

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

/** What docs/postgres.md says of a run, as far as its parts were measured: of the cells those at the ends. */
export function postgresReport({ rows = [], bloat = [], machine, effort, loadBefore, loadAfter }: Partial<PostgresResults>): Report {
  const { cpu, cores, node } = machine ?? {}
  const { rounds, roundMs = 0 } = effort ?? {}
  const below = `Median of ${rounds} rounds of ${roundMs / 1000} s, p99 in milliseconds; ${cpu}, ${cores} cores, Node ${node}, PostgreSQL 15, load average ${loadBefore} before and ${loadAfter} after.`
  const cellOf = ({ addedMs, processes, keys, callers }: PostgresRow): string => `${addedMs} ms|${processes}|${callers}|${whole(keys)}`
  const ofContender = (name: string) => (cell: string) => {
    const found = rows.find((row) => row.name === name && cellOf(row) === cell)
    return found === undefined ? '' : `${whole(found.perSecond.median)} (${found.p99Ms.toFixed(1)})`
  }
  const shown = rows.filter(({ processes, callers, keys }) => processes !== 3 && callers !== 16 && keys !== 100)
  return {
    pages: ['postgres.md'],
    tables: [
      tableOf({ name: 'postgres', below }, [...new Set(shown.map(cellOf))], {
        ...Object.fromEntries(
          ['added', 'processes', 'callers each', 'keys'].map((head, i) => [head, (cell: string) => cell.split('|')[i] ?? '']),
        ),
        ...Object.fromEntries(rows.map(({ name }) => [name, ofContender(name)])),
      }),
      tableOf({ name: 'postgres-bloat' }, bloat, {
        decisions: ({ decisions }) => whole(decisions),
        'after, s': ({ seconds }) => whole(seconds),
        updates: ({ updates }) => whole(updates),
        'in place': ({ inPlace }) => whole(inPlace),
        'dead rows': ({ dead }) => whole(dead),
        'runs of autovacuum': ({ vacuums }) => whole(vacuums),
        'table, KiB': ({ tableKiB }) => whole(tableKiB),
        'with index': ({ allKiB }) => whole(allKiB),
      }),
    ],
  }
}
