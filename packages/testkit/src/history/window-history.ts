import type { Windows } from '../oracle/windows.js'
import type { Admission, Excess } from './admission.js'

// The forms of "never over" for windows, without an oracle. One key, one policy, and only takes: a reset or a refund between them
// forgives what these count. Times are the clock's readings, in whatever order they came.

/** Looks for a window in which more than `limit` was admitted. */
export function firstWindowExcess(limit: number, windows: Windows, admissions: readonly Admission[]): Excess | undefined {
  return firstOverBudget(limit, admissions, (atUs) => Number(windows(BigInt(atUs)).startUs))
}

/** Looks for a position of a window of `windowUs` in which more than `budget` was admitted: the limit of a log, or one below twice the limit. */
export function firstPositionExcess(budget: number, windowUs: number, admissions: readonly Admission[]): Excess | undefined {
  return firstOverBudget(budget, admissions, (atUs) => atUs - windowUs + 1)
}

/** A moment at which demand went without tokens that a log had for it, and what was admitted in the window that ended then. */
export interface Shortfall {
  readonly atUs: number
  readonly admitted: number
}

/**
 * Looks for a moment at which a log held back: demand was never met in full at any of `momentsUs`, and yet the window that ended with one
 * of them holds fewer than `limit`.
 */
export function firstShortfall(
  limit: number,
  windowUs: number,
  admissions: readonly Admission[],
  momentsUs: readonly number[],
): Shortfall | undefined {
  const sorted = inTime(admissions)
  const [into, outOf] = [new Tally(sorted), new Tally(sorted)]
  for (const atUs of [...momentsUs].sort((a, b) => a - b)) {
    const admitted = into.before(atUs + 1) - outOf.before(atUs - windowUs + 1)
    if (admitted < limit) return { atUs, admitted }
  }
  return undefined
}

/** The first admission that is over the budget, counted from where a window that it ends begins. */
function firstOverBudget(budget: number, admissions: readonly Admission[], startUs: (atUs: number) => number): Excess | undefined {
  const sorted = inTime(admissions)
  const before = new Tally(sorted)
  let admitted = 0
  for (const { atUs, cost } of sorted) {
    admitted += cost
    const inWindow = admitted - before.before(startUs(atUs))
    if (inWindow > budget) return { fromUs: sorted[before.counted]?.atUs ?? atUs, toUs: atUs, admitted: inWindow, budget }
  }
  return undefined
}

/** What was admitted before a moment, of moments that only grow. */
class Tally {
  readonly #sorted: readonly Admission[]
  #cost = 0
  counted = 0

  constructor(sorted: readonly Admission[]) {
    this.#sorted = sorted
  }

  before(us: number): number {
    for (let next = this.#sorted[this.counted]; next !== undefined && next.atUs < us; next = this.#sorted[++this.counted]) {
      this.#cost += next.cost
    }
    return this.#cost
  }
}

function inTime(admissions: readonly Admission[]): Admission[] {
  return [...admissions].sort((a, b) => a.atUs - b.atUs)
}
