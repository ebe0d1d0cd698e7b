import { table } from '../markdown.js'

/** Decisions a second of one contender, in one cell. */
export interface PostgresRow {
  /** Added to each round trip. */
  readonly addedMs: number
  readonly keys: number
  readonly callers: number
  readonly name: string
  readonly perSecond: { readonly median: number; readonly least: number; readonly most: number }
}

/** What `npm run bench:postgres` found. */
export interface PostgresResults {
  readonly kind: 'postgres'
  readonly machine: {
    readonly node: string
    readonly cpu: string
    readonly cores: number
    readonly load: number
    readonly postgres: number
  }
  readonly rounds: number
  readonly roundMs: number
  readonly rows: readonly PostgresRow[]
}

/** The parts of docs/postgres.md, by the names of their places. */
export function postgresMarkdownParts({ machine, rounds, roundMs, rows }: PostgresResults): ReadonlyMap<string, string> {
  const names = [...new Set(rows.map(({ name }) => name))]
  const cellOf = ({ addedMs, keys, callers }: PostgresRow): string => `${addedMs} ms|${keys.toLocaleString('en')}|${callers}`
  const cells = [...new Set(rows.map(cellOf))].map((cell) => [
    ...cell.split('|'),
    ...names.map((name) => {
      const found = rows.find((row) => row.name === name && cellOf(row) === cell)
      const { median, least, most } = found?.perSecond ?? { median: 0, least: 0, most: 0 }
      return `${count(median)} (${count(least)} to ${count(most)})`
    }),
  ])
  const { cpu, cores, node, load, postgres } = machine
  const where = `Median, least and most of ${rounds} rounds of ${roundMs / 1000} s; ${cpu}, ${cores} cores, Node ${node}, PostgreSQL ${postgres}, load average ${load.toFixed(1)}.`
  return new Map([['postgres', `${table(['added', 'keys', 'callers', ...names], cells)}\n\n${where}`]])
}

function count(perSecond: number): string {
  return perSecond.toLocaleString('en')
}
