import { markdownTable } from '../markdown-tables.js'
import type { Memory, Speeds } from './look-speed.js'
import type { AttackResult } from './zipf-attack.js'

/** What `npm run prove:gate` found. */
export interface GateResults {
  readonly kind: 'gate'
  readonly where: string
  readonly runs: readonly { readonly name: string; readonly result: AttackResult }[]
  readonly speeds: Speeds
  readonly memory: Memory
}

/** The accuracy of each run, a row for each figure. */
export function accuracyTable(runs: GateResults['runs']): string {
  const rows: readonly (readonly [title: string, of: (result: AttackResult) => string])[] = [
    ['records', ({ records }) => records.toLocaleString('en')],
    ['keys in the window at once', ({ mostKeysInWindow }) => mostKeysInWindow.toLocaleString('en')],
    ['memory', ({ stats }) => mebibytes(stats.memoryBytes)],
    ['stated delay', ({ statedDelayMs }) => `${Math.ceil(statedDelayMs)} ms`],
    ['recall: keys above the threshold with a verdict in that time', ({ found, rises }) => share(found, rises)],
    ['attackers found', ({ attackersFound, attackersAbove }) => share(attackersFound, attackersAbove)],
    ['precision: verdicts on keys above the threshold', ({ right, verdicts }) => share(right, verdicts)],
    ['delay, median, 99 %, most', ({ delaysMs }) => [delaysMs.median, delaysMs.p99, delaysMs.most].map((ms) => `${ms} ms`).join(', ')],
    ['counts below the exact one', ({ under, compared }) => share(under, compared)],
    ['error of a count, mean, 99 %, most', ({ error }) => [error.mean.toFixed(2), error.p99, error.most].join(', ')],
    ['bound on the error, epsilon of all', ({ error }) => error.bound.toFixed(0)],
    ['margin, most', ({ mostMargin }) => String(mostMargin)],
  ]
  return markdownTable(
    ['', ...runs.map(({ name }) => name)],
    rows.map(([title, of]) => [title, ...runs.map(({ result }) => of(result))]),
  )
}

/** Calls and their time, as rows. */
export function timesOfCalls({ speeds }: GateResults): readonly (readonly [call: string, ns: number])[] {
  return [
    ['`check`, nothing in force', speeds.nothingInForce],
    ['`check` of a key that passes, 5,000 keys blocked', speeds.lookAtPass],
    ['`check` of a blocked key', speeds.lookAtBlock],
    ['`Map.get` of the same keys', speeds.mapGet],
    ['`take` of a token bucket, coarse clock', speeds.take],
    ['`record` with its counting', speeds.record],
    ['an exact count in a `Map` that is cleared each window', speeds.exactRecord],
  ]
}

/** The time of a call, the records a second, and the memory of a million keys. */
export function costTable(results: GateResults): string {
  const { speeds, memory, where } = results
  const rows = timesOfCalls(results).map(([call, ns]) => [call, `${ns.toFixed(ns < 10 ? 1 : 0)} ns`])
  return [
    markdownTable(['one call', 'time'], rows),
    '',
    `That is ${(1e3 / speeds.record).toFixed(1)} million records a second. A million distinct keys in one window take ${mebibytes(memory.gateBytes)} in the gate, and ${mebibytes(memory.exactBytes)} in an exact map.`,
    `${where}: compare the rows with each other.`,
  ].join('\n')
}

function share(part: number, whole: number): string {
  return `${((100 * part) / whole).toFixed(2)} % of ${whole.toLocaleString('en')}`
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`
}
