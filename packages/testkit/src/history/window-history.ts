import type { Window, Windows } from '../oracle/windows.js'
import type { Admission, Excess } from './admission.js'

// The forms of "never over" for windows, without an oracle. One key, one policy, and only takes: a reset or a refund between them
// forgives what these count. Times are the clock's readings, in whatever order they came.

/** Looks for a window in which more than `limit` was admitted. */
export function firstWindowExcess(limit: number, windows: Windows, admissions: readonly Admission[]): Excess | undefined {
  let window: Window | undefined
  let inWindow: Admission[] = []
  for (const admission of inTime(admissions)) {
    const own = windows(BigInt(admission.atUs))
    inWindow = own.startUs === window?.startUs ? [...inWindow, admission] : [admission]
    window = own
    const excess = excessOf(inWindow, limit)
    if (excess !== undefined) return excess
  }
  return undefined
}

/** Looks for a position of a window of `windowUs` in which more than `budget` was admitted: the limit of a log, or one below twice the limit. */
export function firstPositionExcess(budget: number, windowUs: number, admissions: readonly Admission[]): Excess | undefined {
  let inWindow: Admission[] = []
  for (const admission of inTime(admissions)) {
    inWindow = [...inWindow.filter(({ atUs }) => atUs + windowUs > admission.atUs), admission]
    const excess = excessOf(inWindow, budget)
    if (excess !== undefined) return excess
  }
  return undefined
}

function inTime(admissions: readonly Admission[]): Admission[] {
  return [...admissions].sort((a, b) => a.atUs - b.atUs)
}

function excessOf(admissions: readonly Admission[], budget: number): Excess | undefined {
  const admitted = admissions.reduce((sum, { cost }) => sum + cost, 0)
  const [first, last] = [admissions[0], admissions.at(-1)]
  if (admitted <= budget || first === undefined || last === undefined) return undefined
  return { fromUs: first.atUs, toUs: last.atUs, admitted, budget }
}
