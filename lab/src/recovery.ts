import type { ReportMark } from 'sluicegate-commands/report/report.js'

/** Admissions a second over time: equal steps of `xs`, in seconds. */
export interface AdmittedOverTime {
  readonly xs: readonly number[]
  readonly admitted: readonly number[]
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
