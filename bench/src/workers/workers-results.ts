import type { Machine } from '../machine.js'
import type { Table } from '../markdown.js'
import { figure } from '../report.js'
import { summaryOf } from '../samples.js'
import { type Way, WITH_OBJECT } from './worker.js'

/** One way with a number of keys: samples of the same round were measured one after another. */
export interface WorkersRow {
  readonly way: Way
  readonly keys: number
  readonly perSecond: readonly number[]
  /** Requests to objects for each admitted token. */
  readonly calls: readonly number[]
}

/** How much is measured. */
export interface WorkersEffort {
  readonly rounds: number
  readonly roundMs: number
  readonly connections: number
}

/** What `npm run bench:workers` found. */
export interface WorkersResults {
  readonly kind: 'workers'
  readonly machine: Machine
  readonly effort: WorkersEffort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly rows: readonly WorkersRow[]
}

/** The table of docs/benchmarks-edge.md. */
export function workersTable({ rows, effort, loadBefore, loadAfter }: WorkersResults): Table {
  const { rounds, roundMs, connections } = effort
  const where = `${connections} connections, ${rounds} rounds of ${roundMs / 1000} s; load average ${loadBefore} before and ${loadAfter} after`
  return {
    name: 'workers',
    title: `Requests a second of a Worker. ${where}`,
    head: ['keys', 'limit', 'requests/s', 'quartiles', 'calls a token'],
    rows: rows.map(({ way, keys, perSecond, calls }) => {
      const { median, lowerQuartile, upperQuartile } = summaryOf(perSecond)
      const each = WITH_OBJECT.includes(way) ? figure(summaryOf(calls).median) : ''
      return [keys.toLocaleString('en'), way, count(median), `${count(lowerQuartile)}..${count(upperQuartile)}`, each]
    }),
  }
}

function count(number: number): string {
  return Math.round(number).toLocaleString('en')
}
