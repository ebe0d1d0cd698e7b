import { PolicyError } from '../errors.js'

/** A rate as `CL.THROTTLE` of redis-cell takes it: `count` tokens every `periodS` seconds, and `maxBurst` more than one at once. */
export interface CallRate {
  /** An integer of at least 0. `maxBurst + 1` tokens can be taken at once. */
  readonly maxBurst: number
  /** An integer of at least 1. */
  readonly count: number
  /** Seconds, an integer of at least 1. */
  readonly periodS: number
}

const NS_PER_S = 1_000_000_000
/** The longest time that a key needs to be full again, `(maxBurst + 1) * periodS / count`. */
const LONGEST_DAYS = 400
export const LONGEST_NS: number = LONGEST_DAYS * 86_400 * NS_PER_S

/**
 * Nanoseconds between two tokens, truncated to a whole number as redis-cell does: the rate is up to 1 / interval faster than written.
 *
 * @throws {PolicyError} `LIMIT_INVALID` for no rate or a number out of range, `RANGE_UNSUPPORTED` for a rate that no key can hold.
 */
export function intervalNsOf(rate: CallRate): number {
  if (typeof rate !== 'object' || rate === null) {
    throw new PolicyError('LIMIT_INVALID', 'rate', rate, 'must be an object such as { maxBurst: 15, count: 30, periodS: 60 }')
  }
  const { maxBurst, count, periodS } = rate
  // Integers first: a sum with a bigint throws.
  if (!(Number.isInteger(maxBurst) && maxBurst >= 0 && Number.isSafeInteger(maxBurst + 2))) throw notAnInteger('maxBurst', maxBurst, 0)
  if (!(Number.isInteger(count) && count >= 1)) throw notAnInteger('count', count, 1)
  if (!(Number.isInteger(periodS) && periodS >= 1)) throw notAnInteger('periodS', periodS, 1)
  const intervalNs = Math.trunc((periodS * NS_PER_S) / count)
  if (intervalNs < 1) {
    throw new PolicyError('RANGE_UNSUPPORTED', 'count', count, `must be at most one per nanosecond, ${periodS * NS_PER_S} in this period`)
  }
  if ((maxBurst + 1) * intervalNs > LONGEST_NS) {
    const mend = `must be refilled within ${LONGEST_DAYS} days: lower it, raise count or shorten the period`
    throw new PolicyError('RANGE_UNSUPPORTED', 'maxBurst', maxBurst, mend)
  }
  return intervalNs
}

function notAnInteger(option: string, value: number, least: number): PolicyError {
  return new PolicyError('LIMIT_INVALID', option, value, `must be an integer >= ${least}`)
}
