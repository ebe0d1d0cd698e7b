import { PolicyError } from './errors.js'
import { type Key, ownKey } from './key.js'
import { checkInteger, checkOptions, checkSignal, isInteger } from './options/option-checks.js'
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

/** What `limiter.wait` takes beside the key. */
export interface WaitOptions {
  /**
   * Tokens to wait for.
   *
   * @defaultValue `1`
   * @example await limiter.wait('ada', { cost: 3 })
   */
  readonly cost?: number
  /**
   * Ends the wait: it rejects with the signal's reason, and its booking is returned.
   *
   * @defaultValue none
   * @example await limiter.wait('ada', { signal: AbortSignal.timeout(5_000) })
   */
  readonly signal?: AbortSignal
  /**
   * Denied at once when it would take longer.
   *
   * @defaultValue as long as it takes
   * @example await limiter.wait('ada', { maxWait: '500ms' })
   */
  readonly maxWait?: Duration
}

/** What `limiter.reserve` takes beside the key and the cost. */
export interface ReserveOptions {
  /**
   * Nothing is booked, and `allowed` is false, when the tokens may be spent only later than this; `waitMs` says when they could be. 0: now or not at all.
   *
   * @defaultValue as far ahead as the policy allows
   * @example limiter.reserve('ada', 5, { maxWait: 0 })
   */
  readonly maxWait?: Duration
}

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
