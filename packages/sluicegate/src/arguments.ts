import { PolicyError } from './errors.js'
import { type Key, ownKey } from './key.js'
import { checkInteger, checkOptions, checkSignal, isInteger } from './options/option-checks.js'
import type { Clock } from './time/clock.js'
import { checkedMs, type Duration, toMs } from './time/duration.js'

const MAX_BLOCK_MS = 100 * 366 * 86_400_000

/** Above every limit: such a cost never passes. */
const BEYOND_LIMITS: number = 2 ** 53

/**
 * The cost, at most {@link BEYOND_LIMITS}.
 *
 * @throws {PolicyError} `COST_INVALID`
 */
export function checkedCost(cost: unknown): number {
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 1) return Math.min(cost, BEYOND_LIMITS)
  throw new PolicyError('COST_INVALID', 'cost', cost, 'must be an integer >= 1')
}

/**
 * Tokens to give or take, at most what a double counts exactly: no debt is above it.
 *
 * @throws {PolicyError} `COST_INVALID`
 */
export function checkedTokens(tokens: unknown): number {
  if (typeof tokens === 'number' && Number.isInteger(tokens) && tokens >= 1) return Math.min(tokens, Number.MAX_SAFE_INTEGER)
  throw new PolicyError('COST_INVALID', 'tokens', tokens, 'must be an integer >= 1')
}

/**
 * What a request really cost.
 *
 * @throws {PolicyError} `COST_INVALID`
 */
export function checkActualCost(actualCost: unknown): void {
  if (isInteger(actualCost, 0)) return
  throw new PolicyError('COST_INVALID', 'actualCost', actualCost, 'must be an integer >= 0')
}

/**
 * How many of the top keys are wanted.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function checkedTop(n: unknown): number {
  checkInteger('n', n, 0, Number.POSITIVE_INFINITY)
  return n
}

/**
 * How long to block, to the nearest microsecond as readings are; only 0 itself is none.
 *
 * @throws {PolicyError} `DURATION_INVALID`
 */
export function blockUs(duration: Duration): number {
  const ms = toMs(duration, 'duration')
  if (ms > MAX_BLOCK_MS) throw new PolicyError('DURATION_INVALID', 'duration', duration, 'must be at most 100 years')
  return ms > 0 ? Math.max(1, Math.round(ms * 1000)) : 0
}

/** What has a time, and callers that wait. */
export interface TurnOptions {
  /**
   * The time of decisions, bans and waits, of pauses and of records. Over a store that of leases, waits and timeouts: keys are decided by the store's
   * clock, with which it need not agree.
   *
   * @defaultValue `preciseClock()`; `wallClock()` for a ledger, and in memory under windows of the calendar or of a day and longer; of a queue its limiter's
   * @example createLimiter(policy, { clock: manualClock() })
   */
  readonly clock?: Clock
  /**
   * Callers that may be in `wait` at once in this thread, jobs of a queue that may wait, requests that may wait for one key of `limitedFetch`,
   * records that wait for the sink of a ledger: 0 to 1,000,000. With 0 a caller has its turn at once or not at all.
   *
   * @defaultValue `10_000`
   * @example createLimiter(policy, { maxWaiting: 100 })
   */
  readonly maxWaiting?: number
}

/** What `limiter.wait` takes beside the key. */
export interface WaitOptions {
  /**
   * Tokens to wait for, or that a job takes: an integer >= 1. Of a job also `'metered'`, or what `OpenOptions` say, where the cost is known only
   * afterwards: the job has a hold, `job.hold`, which is renewed while it runs and closed when it ends.
   *
   * @defaultValue `1`
   * @example await limiter.wait('ada', { cost: 3 })
   * @example await limiter.run('ada', (job) => job.hold?.add(5), { cost: 'metered' })
   */
  readonly cost?: number
  /**
   * Ends a wait, whose booking is returned, or removes a waiting job, and aborts `job.signal` of a running one. The call rejects with the signal's reason.
   *
   * @defaultValue none
   * @example await limiter.wait('ada', { signal: AbortSignal.timeout(5_000) })
   */
  readonly signal?: AbortSignal
  /**
   * A wait that would take longer is denied at once; `reserve` books nothing then, `allowed` is false, and `waitMs` says when the tokens could be spent.
   * A job, or a request of `limitedFetch`, that has not begun by then is rejected with `WAIT_TOO_LONG`, a request at once where that is known. Of a queue:
   * of every job without its own. 0: now or not at all.
   *
   * @defaultValue as long as it takes; `reserve`: as far ahead as the policy allows
   * @example await limiter.wait('ada', { maxWait: '500ms' })
   */
  readonly maxWait?: Duration
}

/** What `limiter.reserve` takes beside the key and the cost. */
export type ReserveOptions = Pick<WaitOptions, 'maxWait'>

/** What is asked of `wait`, checked; all but the key, which only the limiter knows how to check. */
export interface WaitRequest {
  readonly key: Key
  readonly cost: number
  /** `Infinity`: as long as it takes. */
  readonly maxWaitMs: number
  readonly signal: AbortSignal | undefined
}

const OPTIONS: readonly string[] = ['cost', 'signal', 'maxWait'] satisfies (keyof WaitOptions)[]
const RESERVE_OPTIONS: readonly string[] = ['maxWait'] satisfies (keyof ReserveOptions)[]

/**
 * How far ahead `reserve` books at most, in milliseconds.
 *
 * @throws {PolicyError} `OPTION_UNKNOWN` or `OPTION_INVALID`
 */
export function checkedAheadMs(options: ReserveOptions | undefined): number {
  if (options === undefined) return Number.POSITIVE_INFINITY
  const { maxWait = Number.POSITIVE_INFINITY } = checkOptions(options, RESERVE_OPTIONS, '{ maxWait: 0 }', 'reserve()')
  return checkedMs('maxWait', maxWait, 0)
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` or `COST_INVALID` */
export function checkedWaitRequest(key: Key, options: WaitOptions): WaitRequest {
  const own = checkOptions(options, OPTIONS, "{ maxWait: '1s' }", 'wait()')
  const { cost = 1, maxWait = Number.POSITIVE_INFINITY, signal } = own
  const maxWaitMs = checkedMs('maxWait', maxWait, 0)
  checkSignal(signal)
  return { key: ownKey(key), cost: checkedCost(cost), maxWaitMs, signal }
}
