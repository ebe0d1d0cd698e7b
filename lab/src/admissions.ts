import { readFileSync } from 'node:fs'
import type { ReportMark } from 'sluicegate-commands/report/report.js'
import { worstSureExcess } from 'sluicegate-testkit'
import { machineUs } from './lab-load.js'
import type { LabPolicy } from './service-node.js'

/** An answer of the load's record, in microseconds of the machine's monotonic clock. */
export interface RecordedAnswer {
  readonly fromUs: number
  readonly toUs: number
  readonly outcome: string
  readonly key: string
}

/** The answers that `sluicegate load --record` wrote. */
export function readRecord(file: string): RecordedAnswer[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line) => {
    const [from, to, outcome = '', key = ''] = line.split('\t')
    return to === undefined ? [] : [{ fromUs: Number(from), toUs: Number(to), outcome, key }]
  })
}

/** Of the key that is over its policy by the most: by how many tokens, for sure. */
export function worstKey(policy: LabPolicy, answers: readonly RecordedAnswer[]): { key: string; over: number } {
  const byKey = new Map<string, RecordedAnswer[]>()
  for (const answer of answers) {
    if (answer.outcome !== 'allowed') continue
    const held = byKey.get(answer.key)
    if (held === undefined) byKey.set(answer.key, [answer])
    else held.push(answer)
  }
  let worst = { key: '', over: 0 }
  for (const [key, spent] of byKey) {
    const over = policy.algorithm === undefined ? worstSureExcess(policy, spent) : worstSureWindow(policy, spent)
    if (over > worst.over) worst = { key, over }
  }
  return worst
}

/** Of the clocks of servers against the one by which the record is made. */
const CLOCK_US = 2_000

/** By how many tokens the worst window is surely over its limit: counted are those that were surely spent within one. */
export function worstSureWindow(
  { limit, windowMs }: LabPolicy,
  spent: readonly Pick<RecordedAnswer, 'fromUs' | 'toUs'>[],
  wallUs = Date.now() * 1_000 - machineUs(),
): number {
  const counts = new Map<number, number>()
  const windowAt = (us: number): number => Math.floor((us + wallUs) / (windowMs * 1_000))
  for (const { fromUs, toUs } of spent) {
    const window = windowAt(fromUs - CLOCK_US)
    if (window === windowAt(toUs + CLOCK_US)) counts.set(window, (counts.get(window) ?? 0) + 1)
  }
  return Math.max(0, ...[...counts.values()].map((count) => count - limit))
}

/** The share of the budget that was used: of keys with more demand than budget, admitted over `rate * length + burst`. */
export function budgetUse({ limit, windowMs, burst }: LabPolicy, answers: readonly RecordedAnswer[]): number | undefined {
  const fromUs = answers.reduce((first, each) => Math.min(first, each.fromUs), Number.POSITIVE_INFINITY)
  const toUs = answers.reduce((last, each) => Math.max(last, each.toUs), 0)
  const budget = burst + (limit * (toUs - fromUs)) / (windowMs * 1_000)
  const counts = new Map<string, { asked: number; admitted: number }>()
  for (const { key, outcome } of answers) {
    const count = counts.get(key) ?? { asked: 0, admitted: 0 }
    count.asked++
    if (outcome === 'allowed') count.admitted++
    counts.set(key, count)
  }
  const busy = [...counts.values()].filter(({ asked }) => asked > 1.2 * budget)
  if (busy.length === 0) return undefined
  return busy.reduce((sum, { admitted }) => sum + admitted, 0) / (busy.length * budget)
}

/** Admissions a second over time: equal steps of `xs`, in seconds. */
export interface AdmittedOverTime {
  readonly xs: readonly number[]
  readonly admitted: readonly number[]
}

const BIN_MS = 250

/** What was admitted a second, from a start on. */
export function admittedOverTime(
  answers: readonly { readonly toUs: number; readonly outcome: string }[],
  startUs: number,
  seconds: number,
): AdmittedOverTime {
  const bins = Math.max(1, Math.floor((seconds * 1_000) / BIN_MS))
  const admitted = Array<number>(bins).fill(0)
  for (const { toUs, outcome } of answers) {
    const bin = Math.floor((toUs - startUs) / 1_000 / BIN_MS)
    if (outcome === 'allowed' && bin >= 0 && bin < bins) admitted[bin] = (admitted[bin] as number) + 1_000 / BIN_MS
  }
  return { xs: admitted.map((_, i) => (i * BIN_MS) / 1_000), admitted }
}

/** What faults cost the callers of saturated keys. */
export interface Recovery {
  /** Seconds from the end of a fault until the rate was that of before again, the longest of all; null if a fault had no such end. */
  readonly seconds: number | null
  /** Admissions that are missing, against the rate before the first fault. */
  readonly lost: number
}

/** The rate counts as that of before from this part on: one second has few admissions. */
const RECOVERED_PART = 0.8
/** The burst at the start is no rate. */
const BURST_S = 1
const SMOOTHED_S = 1

/** How fast the rate came back after faults, and what was not admitted until then; null without a fault, or a time before it. */
export function recoveryOf({ xs, admitted }: AdmittedOverTime, marks: readonly ReportMark[]): Recovery | null {
  const stepS = (xs[1] ?? 0) - (xs[0] ?? 0)
  const firstX = Math.min(...marks.map(({ fromX }) => fromX))
  const before = admitted.filter((_, i) => (xs[i] as number) >= BURST_S && (xs[i] as number) + stepS <= firstX)
  if (marks.length === 0 || !(stepS > 0) || before.length === 0) return null
  const usual = meanOf(before)
  const bins = Math.max(1, Math.round(SMOOTHED_S / stepS))
  const isUsual = (i: number): boolean => {
    // At the end half of it is enough.
    const next = admitted.slice(i, i + bins)
    return next.length >= bins / 2 && meanOf(next) >= RECOVERED_PART * usual
  }
  let seconds: number | null = 0
  const missing = new Set<number>()
  for (const { fromX, toX } of marks) {
    const again = xs.findIndex((x, i) => x >= toX && isUsual(i))
    if (again === -1) seconds = null
    else if (seconds !== null) seconds = Math.max(seconds, (xs[again] as number) - toX)
    for (const [i, x] of xs.entries()) if (x >= fromX && (again === -1 || i < again)) missing.add(i)
  }
  const lost = [...missing].reduce((sum, i) => sum + (usual - (admitted[i] as number)) * stepS, 0)
  return { seconds: seconds === null ? null : rounded(seconds), lost: Math.max(0, Math.round(lost)) }
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length
}

function rounded(seconds: number): number {
  return Math.round(seconds * 100) / 100
}
