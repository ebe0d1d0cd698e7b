import type { HotKeys } from '../decision/hot-keys.js'
import type { LimiterStats } from '../limiter.js'
import type { CallRate } from './call-rate.js'

/** What {@link RateTable.throttle} returns: the five numbers of `CL.THROTTLE` in redis-cell. */
export interface Throttled {
  /** Whether the quantity was denied. Then nothing was charged. */
  readonly limited: boolean
  /** The most tokens at once: `maxBurst + 1`. */
  readonly limit: number
  /** Tokens left, from 0 to `limit`. */
  readonly remaining: number
  /** Seconds until the same call passes; -1 when it passed, and when it never can. A part of a second counts as one from 1 ms on. */
  readonly retryAfterS: number
  /** Seconds until the key is full, rounded likewise. */
  readonly resetAfterS: number
}

/**
 * Keys in shared memory whose rate comes with each call: the decisions of redis-cell's `CL.THROTTLE`, for any number of rates in one table.
 * A key takes one word, its theoretical arrival time in nanoseconds, so that calls of different rates on one key share its state.
 */
export interface RateTable extends Disposable {
  /**
   * Takes `quantity` tokens of `key` if the rate allows it; 0 tokens change nothing and return what is left.
   *
   * @param key 0 to 16,384 UTF-16 units.
   * @param quantity an integer of at least 0; more than `maxBurst + 1` never pass.
   * @throws {PolicyError} `KEY_INVALID`, `COST_INVALID`, or `LIMIT_INVALID` and `RANGE_UNSUPPORTED` for the rate.
   * @throws {StoreError} `CONTENTION`
   * @example
   * const { limited, retryAfterS } = table.throttle('user:42', { maxBurst: 15, count: 30, periodS: 60 })
   */
  throttle(key: string, rate: CallRate, quantity?: number): Throttled
  /** Makes the key full again. @throws {PolicyError} `KEY_INVALID` */
  reset(key: string): void
  /** For a worker thread, see {@link attachRateTable}. */
  handle(): RateTableHandle
  /** What each key owes, for {@link restoreRateTable}: it blocks this thread for about a microsecond per key. */
  snapshot(): Uint8Array
  stats(): LimiterStats
  /** The `n` keys of this thread with the most calls, and the `n` with the most denials, approximately; empty without the option `hotKeys`. Default 10. */
  hotKeys(n?: number): HotKeys
  /** Every later call throws. Other threads are not affected. */
  close(): void
}

/** A rate table for another thread: opaque and structured-clonable. */
export interface RateTableHandle {
  readonly sluicegate: 1
}
