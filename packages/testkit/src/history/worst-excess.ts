import type { RateSpec } from '../oracle/emission.js'
import type { Admission } from './admission.js'

/**
 * By how many tokens the worst interval is over `burst + limit / window * length`, 0 when none is: for what may be over by a stated bound.
 * In doubles. See {@link firstExcess} for what never may.
 */
export function worstExcess({ limit, windowMs, burst }: RateSpec, admissions: readonly Admission[]): number {
  const perUs = limit / (windowMs * 1000)
  let admitted = 0
  let lowest = Number.POSITIVE_INFINITY
  let worst = 0
  for (const { atUs, cost } of [...admissions].sort((a, b) => a.atUs - b.atUs)) {
    lowest = Math.min(lowest, admitted - perUs * atUs)
    admitted += cost
    worst = Math.max(worst, admitted - perUs * atUs - lowest - burst)
  }
  return worst
}
