import { ratioOf, summaryOf } from 'sluicegate-testkit/samples.js'
import type { Machine } from './machine.js'
import type { Report } from './report.js'
import { figure, tableOf, whole, withSpread } from './table.js'
import { type Way, WITH_OBJECT } from './workers/worker.js'

/** Processor time of a warm take, in microseconds: one sample a round, of both ways in turn. */
export interface WarmFigure {
  readonly keys: number
  readonly withoutHome: readonly number[]
  readonly withHome: readonly number[]
  /** Calls to the region's store and to the home for 1,000 takes, in the same rounds. */
  readonly calls: { readonly withoutHome: readonly number[]; readonly withHome: readonly number[] }
}

/** What `npm run bench:regions` found. */
export interface RegionsResults {
  readonly kind: 'regions'
  readonly where: string
  readonly takesPerSecond: number
  readonly figures: readonly WarmFigure[]
}

export function regionsReport({ figures, takesPerSecond, where }: RegionsResults): Report {
  const title = `Processor time of the whole process for a warm take, leased, ${takesPerSecond.toLocaleString('en')} takes a second, ${figures[0]?.withHome.length} rounds in turn. ${where}`
  const table = tableOf({ name: 'regions-warm', title }, figures, {
    keys: ({ keys }) => whole(keys),
    'one store, µs': ({ withoutHome }) => figure(summaryOf(withoutHome).median),
    'with a home, µs': ({ withHome }) => figure(summaryOf(withHome).median),
    'with / without': ({ withHome, withoutHome }) => withSpread(ratioOf(withHome, withoutHome)),
    'calls for 1,000 takes': ({ calls }) => figure(summaryOf(calls.withoutHome).median),
    'with a home': ({ calls }) => figure(summaryOf(calls.withHome).median),
  })
  return { pages: ['regions.md'], tables: [table] }
}

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

export function workersReport({ rows, effort, loadBefore, loadAfter }: WorkersResults): Report {
  const { rounds, roundMs, connections } = effort
  const where = `${connections} connections, ${rounds} rounds of ${roundMs / 1000} s; load average ${loadBefore} before and ${loadAfter} after`
  const table = tableOf({ name: 'workers', title: `Requests a second of a Worker. ${where}` }, rows, {
    keys: ({ keys }) => whole(keys),
    limit: ({ way }) => way,
    'requests/s': ({ perSecond }) => withSpread(summaryOf(perSecond), whole),
    'calls a token': ({ way, calls }) => (WITH_OBJECT.includes(way) ? figure(summaryOf(calls).median) : ''),
  })
  return { pages: ['benchmarks-edge.md'], tables: [table] }
}

/** Rounds of one log, read by `wc -l` and by `sluicegate replay` in turn. */
export interface ReplayFigure {
  readonly log: string
  readonly megabytes: number
  readonly linesPerSecond: readonly number[]
  readonly wcLinesPerSecond: readonly number[]
  /** The most memory that the command held. */
  readonly peakMegabytes: number
}

/** What `npm run bench:replay` found. */
export interface ReplayResults {
  readonly kind: 'replay'
  readonly where: string
  readonly lines: number
  readonly figures: readonly ReplayFigure[]
}

export function replayReport({ figures, lines, where }: ReplayResults): Report {
  const title = `${lines.toLocaleString('en')} lines of each log. ${where}`
  const table = tableOf({ name: 'replay-speed', title }, figures, {
    log: ({ log }) => log,
    MB: ({ megabytes }) => megabytes.toFixed(0),
    'lines/s': ({ linesPerSecond }) => withSpread(summaryOf(linesPerSecond), whole),
    '`wc -l`, lines/s': ({ wcLinesPerSecond }) => whole(summaryOf(wcLinesPerSecond).median),
    'of `wc -l`': ({ linesPerSecond, wcLinesPerSecond }) => withSpread(ratioOf(linesPerSecond, wcLinesPerSecond)),
    'most memory, MB': ({ peakMegabytes }) => peakMegabytes.toFixed(0),
  })
  return { pages: ['replay.md'], tables: [table] }
}
