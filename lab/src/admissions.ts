import { readFileSync } from 'node:fs'
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
