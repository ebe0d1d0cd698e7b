import type { Awaitable } from '../awaitable.js'
import { type Clock, preciseClock } from '../clock.js'
import type { Decision } from '../decision.js'
import { PolicyError } from '../errors.js'
import type { WaitOptions } from '../limiter.js'
import { checkFunction, checkInteger, checkNumber, checkOptions } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import type { OutboundRequest } from './outbound-request.js'
import type { PaceSettings } from './pace.js'
import type { Outcome } from './retry-rule.js'

/** What is asked of a limiter: those in the process and those of a fleet have it all. */
export interface OutboundLimiter {
  readonly policy: Policy
  /** Where a fleet's has it, it is asked first: it uses what is leased. */
  take?(key: string): Decision | Promise<Decision>
  wait(key: string, options?: WaitOptions): Promise<Decision>
  refund(key: string, tokens: number): unknown
  penalize(key: string, tokens: number): unknown
}

/** A request waits for its turn: it does not go at once, or a limiter is asked for it, who may say that it can. */
export interface WaitEvent {
  readonly key: string
  readonly url: URL
  readonly method: string
  /** How many wait for this key, this one included. */
  readonly waiting: number
  /** Milliseconds until the next of them may go, as far as that is known: the limiter's own time is not. */
  readonly delayMs: number
}

/** A request will be sent again, after what came of it. */
export interface RetryEvent extends Outcome {
  readonly key: string
  readonly url: URL
  readonly method: string
  /** The number of the attempt to come, from 2 on. */
  readonly attempt: number
  /** The least time until then; it waits for its turn after that. */
  readonly delayMs: number
}

/** The other side refused with 429 or 503, and the rate was lowered. Once for all that were under way. */
export interface ThrottleEvent {
  readonly key: string
  readonly status: number
  /** What `Retry-After` said. */
  readonly retryAfterMs: number | undefined
  /** Milliseconds in which nothing is sent: a pause, or nothing is left until then. */
  readonly pauseMs: number
  /** The rate that was found out, `Infinity` as long as nothing is known. */
  readonly perSecond: number
}

/** What {@link limitedFetch} and {@link limited} take. */
export interface OutboundOptions {
  /** Own limit of each key. Without one, and without a limiter, only what the other side says and does counts. */
  readonly policy?: Policy
  /** The policy of some keys, asked when a key is first met; undefined for `policy`, or for none. At most 1,000 different ones. */
  readonly policyFor?: (key: string) => Policy | undefined
  /** Instead of a policy: a limiter, of this process or of a fleet. It stays open when this is closed. */
  readonly limiter?: OutboundLimiter
  /** Who is limited: default the host of the URL, with its port. A string of 1 to 1,024 characters. */
  readonly key?: (request: OutboundRequest) => string
  /** Higher goes first among those that wait for a key, default 0; of equals the one that came first. */
  readonly priority?: (request: OutboundRequest) => number
  /** Requests of a key under way at once, to the end of the response's body. Default as many as may be. */
  readonly concurrency?: number
  /** A response's body that nobody reads from for so long counts for `concurrency` no more; it stays readable. Default 30,000. */
  readonly bodyStallMs?: number
  /**
   * Rejected with `WAIT_TOO_LONG` when its turn does not come in this time, at once where that is known; 0: it goes at once or not at all.
   * `OUTAGE` where that is because the limiter cannot reach its store. Default as long as it takes.
   */
  readonly maxWaitMs?: number
  /** Pauses that the other side asks for are kept up to this length; beyond it whoever waits is rejected with `PAUSED`. Default 300,000. */
  readonly maxPauseMs?: number
  /** How many may wait for one key: default 10,000, then `QUEUE_FULL`, but for those that are sent again. */
  readonly maxWaiting?: number
  /** How many keys are known at once, 1 to 1,000,000; default 10,000. The one idle for longest is forgotten; with all of them busy `KEYS_FULL`. */
  readonly maxKeys?: number
  /** How often a request is sent at most, 1 to 100; default 5. */
  readonly attempts?: number
  /** No attempt but the first begins later than this after the call; one whose turn has not come by then is `WAIT_TOO_LONG`. Default 120,000. */
  readonly maxTotalMs?: number
  /** Between attempts when the other side says nothing, doubled each time, up to 60,000. Default 1,000. */
  readonly backoffMs?: number
  /** Up to this share is added to each pause, so that not all clients come back at once: 0 to 1, default 0.1. Never less than what was told. */
  readonly jitter?: number
  /** After a refusal: milliseconds in which the rate rises to where it was refused. Default 20,000. */
  readonly recoverMs?: number
  /** Share of a told limit that may be spent at once; the rest is spread over the time until the reset. 0 to 1, default 0.5. */
  readonly freeShare?: number
  /** Has the last word about sending again after a status of 400 or above, or an error, within `attempts` and `maxTotalMs`. `isSafe` is what would be done without it. */
  readonly retry?: (request: OutboundRequest, outcome: Outcome, isSafe: boolean) => Awaitable<boolean>
  /** A request is not sent before the promise resolves that a hook returns for it, and fails with what that rejects with. */
  readonly onWait?: (event: WaitEvent) => unknown
  readonly onRetry?: (event: RetryEvent) => unknown
  readonly onThrottle?: (event: ThrottleEvent) => unknown
  /** Default `preciseClock()`. */
  readonly clock?: Clock
  /** From 0 to below 1, for the jitter; default `Math.random`. */
  readonly random?: () => number
}

const MAX_BACKOFF_MS = 60_000
const EXAMPLE = '{ policy: tokenBucket({ limit: 10, window: "1s" }) }'
const FUNCTIONS = ['policyFor', 'key', 'priority', 'retry', 'onWait', 'onRetry', 'onThrottle', 'random'] as const
const OTHERS = ['policy', 'limiter', 'clock'] as const
const NUMBERS = {
  concurrency: { otherwise: Number.POSITIVE_INFINITY, least: 1, most: Number.POSITIVE_INFINITY, isWhole: true },
  bodyStallMs: { otherwise: 30_000, least: 1, most: Number.POSITIVE_INFINITY, isWhole: false },
  maxWaitMs: { otherwise: Number.POSITIVE_INFINITY, least: 0, most: Number.POSITIVE_INFINITY, isWhole: false },
  maxPauseMs: { otherwise: 300_000, least: 0, most: Number.POSITIVE_INFINITY, isWhole: false },
  maxWaiting: { otherwise: 10_000, least: 1, most: 1_000_000, isWhole: true },
  maxKeys: { otherwise: 10_000, least: 1, most: 1_000_000, isWhole: true },
  attempts: { otherwise: 5, least: 1, most: 100, isWhole: true },
  maxTotalMs: { otherwise: 120_000, least: 0, most: Number.POSITIVE_INFINITY, isWhole: false },
  backoffMs: { otherwise: 1_000, least: 1, most: MAX_BACKOFF_MS, isWhole: false },
  jitter: { otherwise: 0.1, least: 0, most: 1, isWhole: false },
  recoverMs: { otherwise: 20_000, least: 100, most: 3_600_000, isWhole: false },
  freeShare: { otherwise: 0.5, least: 0, most: 1, isWhole: false },
} as const

/** Options with all defaults filled in. */
export interface OutboundSettings extends Record<keyof typeof NUMBERS, number> {
  readonly given: OutboundOptions
  readonly clock: Clock
  readonly random: () => number
  readonly pace: PaceSettings
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID`, `POLICY_INVALID` */
export function outboundSettings(options: OutboundOptions): OutboundSettings {
  checkOptions(options, [...Object.keys(NUMBERS), ...FUNCTIONS, ...OTHERS], EXAMPLE, 'limitedFetch() and limited()')
  const numbers = numbersIn(options)
  for (const name of FUNCTIONS) checkFunction(name, options[name])
  const { policy, policyFor, limiter, clock = preciseClock(), random = Math.random } = options
  if (typeof clock?.nowMs !== 'function') throw new PolicyError('CLOCK_INVALID', 'clock', clock, 'must have nowMs()')
  if (limiter !== undefined) {
    if (typeof limiter?.wait !== 'function') {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as createLimiter(policy)')
    }
    if (policy !== undefined || policyFor !== undefined) {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'has its own policies: give one or the other')
    }
  }
  const { backoffMs, jitter, recoverMs, freeShare } = numbers
  return {
    ...numbers,
    given: options,
    clock,
    random,
    pace: { backoffMs, maxBackoffMs: MAX_BACKOFF_MS, jitter, recoverMs, freeShare, random },
  }
}

function numbersIn(options: OutboundOptions): Record<keyof typeof NUMBERS, number> {
  const names = Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]
  return Object.fromEntries(names.map((name) => [name, checkedNumber(name, options[name])])) as Record<keyof typeof NUMBERS, number>
}

function checkedNumber(name: keyof typeof NUMBERS, value: unknown): number {
  const { otherwise, least, most, isWhole } = NUMBERS[name]
  if (value === undefined) return otherwise
  if (isWhole && value !== most) checkInteger(name, value, least, most)
  else checkNumber(name, value, least, most)
  return value
}
