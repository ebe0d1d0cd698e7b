/** Who is asked about; with all-of also one key for each part. */
export type OracleKey = string | readonly string[]

/** A decision as the oracle predicts it: the fields that do not depend on where it was made. */
export interface OracleDecision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  /** Of all-of. */
  readonly parts?: readonly OracleDecision[]
}

/** What `reserve` answers, and what `cancel` needs again. */
export interface OracleBooking {
  readonly key: OracleKey
  readonly allowed: boolean
  /** From the booking until it may be spent, rounded up; `Infinity` when it never can. */
  readonly waitMs: number
  /** When it may be spent. */
  readonly atUs: bigint
  /** Allowed: the key right after, as `peek` would answer for 1; else of a denied take. */
  readonly decision: OracleDecision
  /** What an algorithm notes beside it; of all-of one booking each part. */
  readonly note?: bigint
  readonly bookedUs?: bigint
  readonly cost?: bigint
  /** How often the numbers of the policy had changed. */
  readonly generation?: number
  readonly parts?: readonly OracleBooking[]
}

/**
 * What a limiter must answer, in whole numbers of any size, written from the contract and never from the core. Readings of the
 * clock are milliseconds, taken to the nearest microsecond.
 */
export interface Oracle {
  take(key: OracleKey, cost: number, nowMs: number): OracleDecision
  peek(key: OracleKey, cost: number, nowMs: number): OracleDecision
  /** This and the next three answer as `peek` would for 1. */
  refund(key: OracleKey, tokens: number, nowMs: number): OracleDecision
  penalize(key: OracleKey, tokens: number, nowMs: number): OracleDecision
  block(key: OracleKey, durationMs: number, nowMs: number): OracleDecision
  reset(key: OracleKey, nowMs: number): OracleDecision
  /** Books at the earliest time at which the cost conforms. */
  reserve(key: OracleKey, cost: number, nowMs: number): OracleBooking
  /** Gives `tokens` of a booking back, as much as is safe. */
  cancel(booking: OracleBooking, tokens: number, nowMs: number): OracleDecision
  update(spec: PolicySpec, nowMs: number): void
  /** The same, to go on from here in another way. */
  copy(): Oracle
  /** Two oracles with the same answer here answer alike about the key for ever. */
  stateTextOf(key: OracleKey): string
  /** What is left of a key whose tokens a full table forgot: its block. */
  forget(key: OracleKey): void
}

/** Makes answers as tests of oracles write them; of a policy with another limit only where the last argument says so. */
export function answersOf(usual: number) {
  return (allowed: boolean, remaining: number, retryAfterMs: number, resetAfterMs: number, limit = usual): OracleDecision => ({
    allowed,
    limit,
    remaining,
    retryAfterMs,
    resetAfterMs,
  })
}

// The numbers of a policy, without the library, as plain data: what oracles and sequences work on.

export interface RatePolicySpec extends RateSpec {
  readonly algorithm: 'token-bucket' | 'gcra'
}

/** The calendars that the oracle knows by itself. */
export interface CalendarSpec {
  readonly unit: 'day' | 'week' | 'month' | 'year'
  readonly timeZone: 'UTC' | 'Europe/Rome'
}

export interface FixedWindowSpec {
  readonly algorithm: 'fixed-window'
  readonly limit: number
  /** With a calendar not looked at. */
  readonly windowMs: number
  readonly calendar?: CalendarSpec
}

export interface SlidingWindowSpec {
  readonly algorithm: 'sliding-window'
  readonly limit: number
  readonly windowMs: number
  /** Counters of any width, as stores have them. */
  readonly isUnpacked?: boolean
  /** Whether over the same windows a key keeps both counts also where their width changes: a saved key has no width. */
  readonly isSaved?: boolean
}

export interface SlidingLogSpec {
  readonly algorithm: 'sliding-log'
  readonly limit: number
  readonly windowMs: number
  /** The declared rounding of stored times; default what {@link logTickUs} says. */
  readonly tickUs?: number
}

export interface ConcurrencySpec {
  readonly algorithm: 'concurrency'
  readonly limit: number
  /** The time to live of a permit. */
  readonly windowMs: number
}

/** A policy that is not made of others. */
export type SinglePolicySpec = RatePolicySpec | FixedWindowSpec | SlidingWindowSpec | SlidingLogSpec | ConcurrencySpec

export interface AllOfSpec {
  readonly algorithm: 'all-of'
  readonly parts: readonly SinglePolicySpec[]
}

export type PolicySpec = SinglePolicySpec | AllOfSpec

export type AlgorithmName = PolicySpec['algorithm']

export const ALGORITHM_NAMES: readonly AlgorithmName[] = [
  'token-bucket',
  'gcra',
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'concurrency',
  'all-of',
]

/** The most that one request can cost. */
export function mostCost(spec: PolicySpec): number {
  if (spec.algorithm === 'all-of') return Math.min(...spec.parts.map(mostCost))
  return 'burst' in spec ? spec.burst : spec.limit
}

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
  /** What is spent beyond a smaller burst stays owed, as in a store that forgives nothing. */
  readonly keepsAll?: boolean
}

const WORD_BITS = 56
const LEAST_WINDOWS = 8n
const LEAST_RANGE_US = 2n ** 22n * 1000n

/**
 * Whether counts of these windows fit a state word, derived again from the words of ADR 9: eleven limits, at most 2^53 - 1, beside numbers of eight
 * windows, and of 70 minutes; of a sliding window beside a seal and numbers of half of that, and counts of 43 bits.
 */
export function isCounted(spec: PolicySpec): boolean {
  const isSliding = spec.algorithm === 'sliding-window'
  if ((spec.algorithm !== 'fixed-window' && !isSliding) || ('calendar' in spec && spec.calendar !== undefined)) return true
  const bits = deepestCount(BigInt(spec.limit)).toString(2).length
  if (isSliding && spec.limit <= 65_535) return true
  const windows = 2n ** BigInt(WORD_BITS - (isSliding ? 1 : 0) - bits)
  const leastUs = isSliding ? LEAST_RANGE_US / 2n : LEAST_RANGE_US
  return windows >= LEAST_WINDOWS && windows * toUs(spec.windowMs) >= leastUs && (!isSliding || bits <= 43)
}

/** The most tokens that count in a window, penalties included. */
export function deepestCount(limit: bigint): bigint {
  return min(11n * limit, 2n ** 53n - 1n)
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
