import { checkOptions } from '../options/option-checks.js'
import type { Duration } from '../time/duration.js'
import { type ConcurrencyPolicy, frozenPolicy } from './policy.js'
import { checkedName, checkedTokenCount, checkedWindowMs, defaultName } from './policy-options.js'

/** What {@link concurrency} takes. */
export interface ConcurrencyOptions {
  /** How many may be in flight at once: an integer from 1 to 10,000. */
  readonly limit: number
  /** After this time a permit that was neither released nor renewed comes back; from 1 ms to 366 days, default 30 s. */
  readonly ttl?: Duration
  /** Printable ASCII, 1 to 120 characters; default `concurrency-<limit>-<ttl>`. */
  readonly name?: string
}

const MAX_LIMIT = 10_000

/**
 * Concurrency: at most `limit` in flight. `take` gives a {@link Permit}; what it holds comes back by `release()`, by the end of a
 * `using` block, or after `ttl` when its holder died.
 *
 * Source: the counting semaphore, E. W. Dijkstra, EWD 123, 1965; leases, C. Gray, D. Cheriton, 1989.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example concurrency({ limit: 20, ttl: '30s' })
 */
export function concurrency(options: ConcurrencyOptions): ConcurrencyPolicy {
  checkOptions(options, ['limit', 'ttl', 'name'], '{ limit: 20, ttl: "30s" }', 'concurrency()')
  const limit = checkedTokenCount('limit', options.limit, MAX_LIMIT, false)
  const windowMs = checkedWindowMs(options.ttl ?? '30s', 'ttl')
  const name = checkedName(options.name, defaultName('concurrency', limit, windowMs))
  return frozenPolicy<ConcurrencyPolicy>({ algorithm: 'concurrency', name, limit, windowMs, burst: limit })
}
