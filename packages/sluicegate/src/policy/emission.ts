import { PolicyError } from '../errors.js'
import type { Policy } from './policy.js'

/**
 * A policy in the integers that the core counts in. One *unit* is `1 / unitsPerUs` microseconds, and one token takes
 * `unitsPerToken` of them to come back, so a key's debt is a whole number of units.
 */
export interface Emission {
  readonly unitsPerUs: number
  readonly unitsPerToken: number
  /** Debt of a key that has just spent its whole burst: `burst * unitsPerToken`. */
  readonly capacity: number
}

/** A full bucket's debt and the ten bursts of penalty below it stay exact in a double (and far inside a state word). */
const MAX_DEBT_UNITS = 2 ** 53
const MAX_DEBT_BURSTS = 12
/** Above it the time base would have to move more than four times a day, and could not bear a clock set back by 12 hours. */
const MAX_UNITS_PER_US = 834_000
const MAX_RATE_LOSS = 0.001

/**
 * The integers of a policy. Exact when `limit / gcd(limit, window in microseconds)` is small enough to be the number of
 * units a microsecond; otherwise the emission interval is rounded *up*, so that the rate is never above the policy's, and
 * the loss is the smallest that fits.
 *
 * @throws {PolicyError} `RANGE_UNSUPPORTED` when the burst takes decades to refill or more than 0.1 % would be lost.
 */
export function emissionOf(policy: Pick<Policy, 'limit' | 'windowMs' | 'burst'>): Emission {
  const { limit, burst } = policy
  const windowUs = Math.round(policy.windowMs * 1000)
  const refillUs = Math.ceil((windowUs / limit) * burst)
  const most = Math.min(MAX_UNITS_PER_US, Math.floor(MAX_DEBT_UNITS / (MAX_DEBT_BURSTS * refillUs + 1)))
  if (most < 1) {
    throw new PolicyError('RANGE_UNSUPPORTED', 'burst', burst, 'would take more than 23 years to refill at this limit and window: lower it')
  }
  const shared = gcd(limit, windowUs)
  const exact = { unitsPerUs: limit / shared, unitsPerToken: windowUs / shared }
  const { unitsPerUs, unitsPerToken } = exact.unitsPerUs <= most ? exact : roundedUp(limit, windowUs, most)
  if ((unitsPerToken * limit) / (unitsPerUs * windowUs) - 1 > MAX_RATE_LOSS) {
    throw new PolicyError(
      'RANGE_UNSUPPORTED',
      'limit',
      limit,
      'loses more than 0.1 % to rounding with this window and burst: lower the burst, or round the limit',
    )
  }
  return { unitsPerUs, unitsPerToken, capacity: burst * unitsPerToken }
}

/** The better of two fractions `unitsPerToken / unitsPerUs` just above `windowUs / limit`, neither part above `most` units a microsecond. */
function roundedUp(limit: number, windowUs: number, most: number): { unitsPerUs: number; unitsPerToken: number } {
  const window = BigInt(windowUs)
  const tokens = BigInt(limit)
  const fine = { unitsPerUs: most, unitsPerToken: Number((window * BigInt(most) + tokens - 1n) / tokens) }
  const fewer = (window * BigInt(most)) / tokens
  const even = { unitsPerUs: Number((fewer * tokens) / window), unitsPerToken: Number(fewer) }
  if (even.unitsPerUs < 1) return fine
  return fine.unitsPerToken * even.unitsPerUs <= even.unitsPerToken * fine.unitsPerUs ? fine : even
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}
