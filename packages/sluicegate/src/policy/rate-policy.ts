import { checkOptions } from '../options/option-checks.js'
import type { Duration } from '../time/duration.js'
import { emissionOf } from './emission.js'
import { frozenPolicy, type Policy } from './policy.js'
import { checkedName, checkedTokenCount, checkedWindowMs, defaultName } from './policy-options.js'

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
const OPTIONS = ['limit', 'window', 'burst', 'name']

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

function ratePolicy(algorithm: 'token-bucket' | 'gcra', options: RateOptions): Policy {
  checkOptions(options, OPTIONS, '{ limit: 100, window: "1s" }', algorithm === 'gcra' ? 'gcra()' : 'tokenBucket()')
  const limit = checkedTokenCount('limit', options.limit, MAX_LIMIT)
  const burst = options.burst === undefined ? limit : checkedTokenCount('burst', options.burst, MAX_LIMIT)
  const windowMs = checkedWindowMs(options.window)
  const name = checkedName(options.name, defaultName(algorithm, limit, windowMs))
  const policy = frozenPolicy({ algorithm, name, limit, windowMs, burst })
  emissionOf(policy) // refuses here what no state word can hold
  return policy
}
