import type { RateSpec } from '../oracle/emission.js'
import type { Admission, Excess } from './admission.js'

/**
 * Looks for an interval in which more was admitted than `burst + limit / window * length`, without any rounding.
 *
 * Every interval counts: for each admission as its end, the worst start so far is carried along, so that n admissions are
 * checked in n log n steps. Times are the clock's readings, in whatever order they came: a clock that steps back passes
 * through an interval twice and still gets its budget once. One key, one policy, and only takes: a reset or refund between
 * them forgives what this counts.
 *
 * @returns the first interval found, with its budget `burst + rate * length`; undefined when there is none.
 */
export function firstExcess(spec: RateSpec, admissions: readonly Admission[]): Excess | undefined {
  const { limit, windowUs, burst } = whole(spec)
  const inTime = [...admissions].sort((a, b) => a.atUs - b.atUs)
  let admitted = 0n
  // windowUs * (admitted before the interval) - limit * (its start): the lowest makes the tightest bound.
  let worst: { readonly level: bigint; readonly fromUs: number; readonly before: bigint } | undefined
  for (const { atUs, cost } of inTime) {
    const level = windowUs * admitted - limit * BigInt(atUs)
    if (worst === undefined || level < worst.level) worst = { level, fromUs: atUs, before: admitted }
    admitted += BigInt(cost)
    if (windowUs * admitted - limit * BigInt(atUs) - worst.level > windowUs * burst) {
      const budget = burst + (limit * BigInt(atUs - worst.fromUs)) / windowUs
      return { fromUs: worst.fromUs, toUs: atUs, admitted: Number(admitted - worst.before), budget: Number(budget) }
    }
  }
  return undefined
}

/**
 * The share of the budget that a caller got who asked all the time for `lengthUs`: admitted / floor(burst + rate * length),
 * as parts of a million, rounded down.
 */
export function shareOfBudget(spec: RateSpec, admitted: number, lengthUs: number): number {
  const { limit, windowUs, burst } = whole(spec)
  const budget = burst + (limit * BigInt(lengthUs)) / windowUs
  return Number((BigInt(admitted) * 1_000_000n) / budget)
}

function whole(spec: RateSpec): { limit: bigint; windowUs: bigint; burst: bigint } {
  return { limit: BigInt(spec.limit), windowUs: BigInt(Math.round(spec.windowMs * 1000)), burst: BigInt(spec.burst) }
}
