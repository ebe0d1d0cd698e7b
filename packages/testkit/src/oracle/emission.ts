// Whole numbers of any size: times in microseconds, counts of tokens.

/** A reading or a length in milliseconds as whole microseconds, the nearest. */
export function toUs(ms: number): bigint {
  return BigInt(Math.round(ms * 1000))
}

/** A length in microseconds as whole milliseconds, rounded up; 0 for none or less. */
export function ceilMs(us: bigint): number {
  return us <= 0n ? 0 : Number(ceilDiv(us, 1000n))
}

/** `a / b` rounded up, for a >= 0 and b > 0. */
export function ceilDiv(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b
}

/** `a / b` rounded down, for b > 0. */
export function floorDiv(a: bigint, b: bigint): bigint {
  return a >= 0n ? a / b : -ceilDiv(-a, b)
}

export function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

export function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

/** The numbers of a policy, without the library: what the oracles and the sequences work on. */
export interface RateSpec {
  readonly limit: number
  readonly windowMs: number
  readonly burst: number
}

/** The declared rounding of a policy, in whole numbers of any size. */
export interface ExactEmission {
  /** Units a microsecond. */
  readonly q: bigint
  /** Units one token takes to come back. */
  readonly perToken: bigint
  /** Units of a full burst. */
  readonly capacity: bigint
}

const MAX_UNITS_PER_US = 834_000n
const MAX_UNITS = 2n ** 53n
const MAX_BURSTS = 12n

/**
 * The declared rule, derived again from its words. A unit is `1 / q` microsecond. With `q = limit / gcd(limit, window)` a
 * token takes a whole number of units and nothing is rounded; that q is used when it is at most `most`: 834,000, and few
 * enough that twelve refills of the whole burst stay within 2^53 units. Otherwise the emission interval is rounded up, to
 * the closer of two fractions: `most` as the denominator, or the largest numerator that fits below it.
 *
 * @returns undefined where the policy is refused: `most` below 1, or more than 0.1 % of the rate lost.
 */
export function exactEmission(spec: RateSpec): ExactEmission | undefined {
  const limit = BigInt(spec.limit)
  const burst = BigInt(spec.burst)
  const windowUs = BigInt(Math.round(spec.windowMs * 1000))
  const refillUs = ceilDiv(windowUs * burst, limit)
  const fit = MAX_UNITS / (MAX_BURSTS * refillUs + 1n)
  const most = fit < MAX_UNITS_PER_US ? fit : MAX_UNITS_PER_US
  if (most < 1n) return undefined
  const shared = gcd(limit, windowUs)
  if (limit / shared <= most) return emission(limit / shared, windowUs / shared, burst)
  const rounded = closer(
    { q: most, perToken: ceilDiv(windowUs * most, limit) },
    { q: (((windowUs * most) / limit) * limit) / windowUs, perToken: (windowUs * most) / limit },
  )
  const lost = rounded.perToken * limit - rounded.q * windowUs
  return lost * 1000n > rounded.q * windowUs ? undefined : emission(rounded.q, rounded.perToken, burst)
}

function emission(q: bigint, perToken: bigint, burst: bigint): ExactEmission {
  return { q, perToken, capacity: burst * perToken }
}

interface Fraction {
  readonly q: bigint
  readonly perToken: bigint
}

/** The smaller of two emission intervals, both at or above the policy's own; the first when they are equal. */
function closer(fine: Fraction, even: Fraction): Fraction {
  if (even.q < 1n) return fine
  return fine.perToken * even.q <= even.perToken * fine.q ? fine : even
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b)
}
