import { type Duration, formatMs, toMs } from './duration.js'
import { emissionOf } from './emission.js'
import { PolicyError } from './errors.js'

/** The algorithms that hold a policy in the process today. */
export type Algorithm = 'token-bucket' | 'gcra'

/** Frozen data. Knows no key, clock or store. Made by {@link tokenBucket} or {@link gcra}. */
export interface Policy {
  readonly algorithm: Algorithm
  /** Printable ASCII, at most 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name: string
  /** Tokens a window, 1 to 1,000,000,000. */
  readonly limit: number
  /** The window in milliseconds, a whole number of microseconds from 1 ms to 366 days. */
  readonly windowMs: number
  /** Tokens that may be spent at once, 1 to 1,000,000,000. */
  readonly burst: number
}

/** What {@link tokenBucket} and {@link gcra} take. */
export interface RateOptions {
  /** Tokens a window: an integer from 1 to 1,000,000,000. */
  readonly limit: number
  /** From 1 ms to 366 days. */
  readonly window: Duration
  /** Tokens that may be spent at once, an integer from 1 to 1,000,000,000; default `limit`. */
  readonly burst?: number
  /** Printable ASCII, 1 to 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name?: string
}

const MAX_LIMIT = 1_000_000_000
const MAX_NAME_LENGTH = 120
const MIN_WINDOW_MS = 1
const MAX_WINDOW_MS = 366 * 86_400_000
const OPTIONS: ReadonlySet<string> = new Set(['limit', 'window', 'burst', 'name'])
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/

/**
 * Token bucket: `limit` tokens a `window` sustained, `burst` at once. The bucket starts full and refills continuously,
 * so over any interval at most `burst + limit / window * length` is admitted.
 *
 * Source: J. Turner, "New directions in communications (or which way to the information age?)", IEEE
 * Communications Magazine, 1986.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example tokenBucket({ limit: 100, window: '1s', burst: 200 }) // 100/s sustained, 200 at once
 */
export function tokenBucket(options: RateOptions): Policy {
  return ratePolicy('token-bucket', options)
}

/**
 * Generic cell rate algorithm: one theoretical arrival time a key. Decides as a token bucket of the same numbers does;
 * with `burst: 1` it spaces requests evenly, one every `window / limit`.
 *
 * Source: ITU-T Recommendation I.371, annex A.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example gcra({ limit: 100, window: '1s', burst: 1 }) // one every 10 ms
 */
export function gcra(options: RateOptions): Policy {
  return ratePolicy('gcra', options)
}

/** Refuses anything that is not a policy made by one of the functions above, or a structured clone of one. */
export function checkedPolicy(policy: unknown, option = 'policy'): Policy {
  const { algorithm, limit, windowMs, burst, name } = (policy ?? {}) as Partial<Policy>
  if (algorithm !== 'token-bucket' && algorithm !== 'gcra') {
    throw new PolicyError('POLICY_INVALID', option, policy, 'must be made by tokenBucket() or gcra()')
  }
  return ratePolicy(algorithm, { limit, window: windowMs, burst, name } as RateOptions)
}

function ratePolicy(algorithm: Algorithm, options: RateOptions): Policy {
  if (typeof options !== 'object' || options === null) {
    throw new PolicyError('POLICY_INVALID', 'options', options, 'must be an object such as { limit: 100, window: "1s" }')
  }
  for (const option of Object.keys(options)) {
    if (!OPTIONS.has(option))
      throw new PolicyError('OPTION_UNKNOWN', option, (options as never)[option], `is not one of ${[...OPTIONS].join(', ')}`)
  }
  const limit = wholeTokens('LIMIT_INVALID', 'limit', options.limit)
  const burst = options.burst === undefined ? limit : wholeTokens('BURST_INVALID', 'burst', options.burst)
  const windowMs = toMs(options.window, 'window', 'WINDOW_INVALID')
  const windowUs = Math.round(windowMs * 1000)
  if (windowMs < MIN_WINDOW_MS || windowMs > MAX_WINDOW_MS || !isNearly(windowMs * 1000, windowUs)) {
    throw new PolicyError('WINDOW_INVALID', 'window', options.window, 'must be from 1 ms to 366 days, in whole microseconds')
  }
  const name = options.name ?? `${algorithm}-${limit}-${formatMs(windowMs)}`
  if (typeof name !== 'string' || name.length > MAX_NAME_LENGTH || !PRINTABLE_ASCII.test(name)) {
    throw new PolicyError('NAME_INVALID', 'name', name, `must be 1 to ${MAX_NAME_LENGTH} printable ASCII characters`)
  }
  const policy: Policy = Object.freeze({ algorithm, name, limit, windowMs, burst })
  emissionOf(policy) // refuses here what no state word can hold
  return policy
}

/** Equal up to a thousandth and what doubles lose on the way: 17417771096.719 ms is whole microseconds, though its product is not. */
function isNearly(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-3 + b * 2 ** -51
}

function wholeTokens(code: 'LIMIT_INVALID' | 'BURST_INVALID', option: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_LIMIT) return value
  const fraction = typeof value === 'number' && value > 0 && value < MAX_LIMIT
  const mend = fraction
    ? 'must be a whole number: widen the window instead, 0.35 a second is 7 per 20s'
    : `must be an integer from 1 to ${MAX_LIMIT}`
  throw new PolicyError(code, option, value, mend)
}
