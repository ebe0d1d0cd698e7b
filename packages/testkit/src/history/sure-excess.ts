import type { RateSpec } from '../oracle/emission.js'
import type { SinglePolicySpec } from '../oracle/policy-spec.js'

/** A token that was spent between two times of the machine's clock, in microseconds. */
export interface Spent {
  readonly fromUs: number
  readonly toUs: number
}

/** More than may pass in an interval. */
export interface SureExcess {
  readonly lengthUs: number
  readonly spent: number
  readonly budget: number
}

/**
 * An interval in which surely more was spent than the budget of its length, on a machine of any speed: of each token only two times are known
 * between which it was spent, and counted are those that lie within.
 */
export function surelyOver(spent: readonly Spent[], budgetOf: (lengthUs: number) => number): SureExcess | undefined {
  const inTime = [...spent].sort((a, b) => a.toUs - b.toUs)
  for (const { fromUs: beginUs } of inTime) {
    let count = 0
    for (const { fromUs, toUs } of inTime) {
      if (fromUs < beginUs) continue
      count++
      const lengthUs = toUs - beginUs
      if (count > budgetOf(lengthUs)) return { lengthUs, spent: count, budget: budgetOf(lengthUs) }
    }
  }
  return undefined
}

/** `burst + rate * length`. */
export function rateBudget({ limit, windowMs, burst }: RateSpec): (lengthUs: number) => number {
  return (lengthUs) => burst + (limit * lengthUs) / (windowMs * 1000)
}

/** `most` in any span shorter than a window, at any position; no bound for longer spans. */
export function positionBudget(most: number, windowMs: number): (lengthUs: number) => number {
  return (lengthUs) => (lengthUs < windowMs * 1000 ? most : Number.POSITIVE_INFINITY)
}

/** What holds in every interval, wherever windows begin. */
export function budgetOf(spec: SinglePolicySpec): (lengthUs: number) => number {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return rateBudget(spec)
    case 'fixed-window':
      return positionBudget(2 * spec.limit, spec.windowMs)
    case 'sliding-window':
      return positionBudget(2 * spec.limit - 1, spec.windowMs)
    case 'sliding-log':
      return positionBudget(spec.limit, spec.windowMs)
    case 'concurrency':
      throw new RangeError('permits are held, not spent')
  }
}
