import type { Machine } from './machine.js'
import type { Table } from './markdown.js'
import { figure, spread, whole } from './report.js'
import { ratios, type Summary, summaryOf } from './samples.js'
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

/** The table of docs/regions.md. */
export function warmTable({ figures, takesPerSecond, where }: RegionsResults): Table {
  return {
    name: 'regions-warm',
    title: `Processor time of the whole process for a warm take, leased, ${takesPerSecond.toLocaleString('en')} takes a second, ${figures[0]?.withHome.length} rounds in turn. ${where}`,
    head: ['keys', 'one store, µs', 'with a home, µs', 'with / without', 'quartiles', 'calls for 1,000 takes', 'with a home'],
    rows: figures.map(({ keys, withoutHome, withHome, calls }) => {
      const share = summaryOf(ratios(withHome, withoutHome))
      return [
        keys.toLocaleString('en'),
        figure(summaryOf(withoutHome).median),
        figure(summaryOf(withHome).median),
        figure(share.median),
        spread(share),
        figure(summaryOf(calls.withoutHome).median),
        figure(summaryOf(calls.withHome).median),
      ]
    }),
  }
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

/** The table of docs/replay.md. */
export function replayTable({ figures, lines, where }: ReplayResults): Table {
  return {
    name: 'replay-speed',
    title: `${lines.toLocaleString('en')} lines of each log. ${where}`,
    head: ['log', 'MB', 'lines/s', 'quartiles', '`wc -l`, lines/s', 'of `wc -l`', 'quartiles', 'most memory, MB'],
    rows: figures.map(({ log, megabytes, linesPerSecond, wcLinesPerSecond, peakMegabytes }) => {
      const [ours, theirs] = [summaryOf(linesPerSecond), summaryOf(wcLinesPerSecond)]
      const share = summaryOf(ratios(linesPerSecond, wcLinesPerSecond))
      return [
        log,
        megabytes.toFixed(0),
        whole(ours.median),
        quartiles(ours, whole),
        whole(theirs.median),
        figure(share.median),
        quartiles(share, figure),
        peakMegabytes.toFixed(0),
      ]
    }),
  }
}

function quartiles({ lowerQuartile, upperQuartile }: Summary, text: (value: number) => string): string {
  return `${text(lowerQuartile)} .. ${text(upperQuartile)}`
}
