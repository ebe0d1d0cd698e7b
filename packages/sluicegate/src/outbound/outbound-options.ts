import type { TurnOptions, WaitOptions } from '../arguments.js'
import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import { requireNoPermits } from '../holds/hold.js'
import { checkMetered, type HoldOpener, type Metered, meteredBy } from '../holds/metered.js'
import { checkFunction, checkInteger, checkNumber, checkOptions } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { type Clock, checkClock, preciseClock } from '../time/clock.js'
import { checkedMs, DAY_MS, type Duration } from '../time/duration.js'
import type { PaceSettings } from './pace.js'
import type { OutboundAnswer, OutboundRequest, Outcome } from './retry-rule.js'

/** The methods of a limiter that are called; in-memory and shared limiters have all of them. */
export interface OutboundLimiter extends HoldOpener {
  readonly policy: Policy
  /** A shared limiter's `take` is asked first, as it uses leases. */
  take?(key: string): Decision | Promise<Decision>
  wait(key: string, options?: WaitOptions): Promise<Decision>
  refund(key: string, tokens: number): unknown
  penalize(key: string, tokens: number): unknown
}

/** A request waits: it cannot be sent at once, or a limiter is asked for it, which may allow it. */
export interface WaitEvent {
  readonly key: string
  readonly url: URL
  readonly method: string
  /** Requests that wait for this key, including this one. */
  readonly waiting: number
  /** Milliseconds until the next of them may be sent, as far as is known, apart from the limiter's own wait. */
  readonly delayMs: number
}

/** A request will be sent again. */
export interface RetryEvent extends Outcome {
  readonly key: string
  readonly url: URL
  readonly method: string
  /** The number of the next attempt, >= 2. */
  readonly attempt: number
  /** The minimum time until then; afterwards it waits for its turn. */
  readonly delayMs: number
}

/** The server refused with 429 or 503, and the rate was lowered. Published once for all requests that were under way. */
export interface ThrottleEvent {
  readonly key: string
  readonly status: number
  /** The value of `Retry-After` in milliseconds. */
  readonly retryAfterMs: number | undefined
  /** Milliseconds until a request may be sent: a pause, or an exhausted quota. */
  readonly pauseMs: number
  /** The learned rate; `Infinity` before anything is known. */
  readonly perSecond: number
}

/** Options of {@link limitedFetch} and {@link limited}. */
export interface OutboundOptions extends TurnOptions, Pick<WaitOptions, 'maxWait'> {
  /**
   * The limit of each key.
   *
   * @defaultValue none: only what the server announces and how it responds counts
   * @example limitedFetch(fetch, { policy })
   */
  readonly policy?: Policy
  /** Called when a key is first used; undefined for `policy`, or for none. At most 1,000 different policies. */
  readonly policyFor?: (key: string) => Policy | undefined
  /**
   * Instead of a policy: a limiter, in memory or shared. It is not closed with this.
   *
   * @defaultValue none
   * @example limitedFetch(fetch, { limiter })
   */
  readonly limiter?: OutboundLimiter
  /**
   * Where the cost of a request is known only afterwards: it opens a hold, which `holdOf(response)` gives to the reader. It is renewed until the
   * response's body ends, in any way, and closed in the next turn of the event loop, as is that of an attempt that fails.
   *
   * @defaultValue none: a request costs one token
   * @example limitedFetch(fetch, { limiter, cost: 'metered' })
   * @example limitedFetch(fetch, { limiter, cost: { most: 4_096 } })
   */
  readonly cost?: Metered
  /**
   * What a request cost, by the head of its response: each attempt's, also a refusal's. Under `cost: 'metered'` this closes the hold, otherwise it
   * corrects the one token, once the body ends. An integer >= 0; undefined if it does not say.
   *
   * @defaultValue none
   * @example limitedFetch(fetch, { limiter, cost: 'metered', costOf: (answer) => Number(answer.header('x-cost') ?? 0) })
   */
  readonly costOf?: (answer: OutboundAnswer) => number | undefined
  /**
   * The key of a request, a string of 1 to 1,024 characters.
   *
   * @defaultValue the host of the URL, with its port
   * @example limitedFetch(fetch, { key: (request) => request.header('authorization') ?? 'none' })
   */
  readonly key?: (request: OutboundRequest) => string
  /** Higher is sent first among the requests of a key; equal ones in the order of calls. */
  readonly priority?: (request: OutboundRequest) => number
  /** Requests of a key under way at once, each to the end of its response's body. */
  readonly concurrency?: number
  /**
   * After so long a body that is not read stops counting for `concurrency`; it stays readable.
   *
   * @defaultValue `'30s'`
   * @example limitedFetch(fetch, { concurrency: 4, bodyTimeout: '5s' })
   */
  readonly bodyTimeout?: Duration
  /**
   * The longest pause that is obeyed; for a longer one waiting requests are rejected with `PAUSED`.
   *
   * @defaultValue `'5m'`
   * @example limitedFetch(fetch, { maxPause: '1m' })
   */
  readonly maxPause?: Duration
  /** Keys in memory at once, 1 to 1,000,000, `10_000` by default. The one that is idle for longest is forgotten; if all are busy `KEYS_FULL`. */
  readonly maxKeys?: number
  /**
   * Attempts at a request, 1 to 100.
   *
   * @defaultValue `5`
   * @example limitedFetch(fetch, { attempts: 2 })
   */
  readonly attempts?: number
  /**
   * The time from the call within which a retry may begin; a retry whose turn comes later is rejected with `WAIT_TOO_LONG`.
   *
   * @defaultValue `'2m'`
   * @example limitedFetch(fetch, { maxTotal: '30s' })
   */
  readonly maxTotal?: Duration
  /**
   * The pause before a retry if the server announces none, doubled for each further one, up to a minute.
   *
   * @defaultValue `'1s'`
   * @example limitedFetch(fetch, { backoff: '200ms' })
   */
  readonly backoff?: Duration
  /**
   * The share that is added to each pause at random, 0 to 1, so that clients do not return at once. Pauses are never shortened.
   *
   * @defaultValue `0.1`
   * @example limitedFetch(fetch, { jitter: 0.3 })
   */
  readonly jitter?: number
  /**
   * Decides about a retry after a status of 400 or above, or an error, within `attempts` and `maxTotal`. `isSafe` is the default decision.
   *
   * @defaultValue `isSafe`
   * @example limitedFetch(fetch, { retry: (request, outcome, isSafe) => isSafe })
   */
  readonly retry?: (request: OutboundRequest, outcome: Outcome, isSafe: boolean) => Awaitable<boolean>
  /**
   * Called when a request waits. If a hook returns a promise, the request is not sent before it resolves, and fails with what it rejects
   * with.
   *
   * @defaultValue none
   * @example limitedFetch(fetch, { onWait: (event) => console.log(event) })
   */
  readonly onWait?: (event: WaitEvent) => unknown
  /**
   * Called before a retry; a promise as of `onWait`.
   *
   * @defaultValue none
   * @example limitedFetch(fetch, { onRetry: (event) => console.log(event) })
   */
  readonly onRetry?: (event: RetryEvent) => unknown
  /**
   * Called when a server slows a key down; a promise as of `onWait`.
   *
   * @defaultValue none
   * @example limitedFetch(fetch, { onThrottle: (event) => console.log(event) })
   */
  readonly onThrottle?: (event: ThrottleEvent) => unknown
}

const MAX_BACKOFF_MS = 60_000
const EXAMPLE = '{ policy: tokenBucket({ limit: 10, window: "1s" }) }'
const FUNCTIONS = ['policyFor', 'costOf', 'key', 'priority', 'retry', 'onWait', 'onRetry', 'onThrottle'] as const
const OTHERS = ['policy', 'limiter', 'cost', 'clock'] as const
const NUMBERS = {
  concurrency: { otherwise: Number.POSITIVE_INFINITY, least: 1, most: Number.POSITIVE_INFINITY, isWhole: true },
  maxWaiting: { otherwise: 10_000, least: 1, most: 1_000_000, isWhole: true },
  maxKeys: { otherwise: 10_000, least: 1, most: 1_000_000, isWhole: true },
  attempts: { otherwise: 5, least: 1, most: 100, isWhole: true },
  jitter: { otherwise: 0.1, least: 0, most: 1, isWhole: false },
} as const
const DURATIONS = {
  bodyTimeout: { otherwise: 30_000, least: 1, most: Number.POSITIVE_INFINITY },
  maxWait: { otherwise: Number.POSITIVE_INFINITY, least: 0, most: Number.POSITIVE_INFINITY },
  maxPause: { otherwise: 300_000, least: 0, most: Number.POSITIVE_INFINITY },
  maxTotal: { otherwise: 120_000, least: 0, most: Number.POSITIVE_INFINITY },
  backoff: { otherwise: 1_000, least: 1, most: MAX_BACKOFF_MS },
} as const

type Numbers = Record<keyof typeof NUMBERS, number>
type Durations = { readonly [name in keyof typeof DURATIONS as `${name}Ms`]: number }

/** Options with their defaults; durations are milliseconds. */
export interface OutboundSettings extends Numbers, Durations {
  readonly given: OutboundOptions
  readonly clock: Clock
  readonly pace: PaceSettings
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID`, `DURATION_INVALID`, `POLICY_INVALID` */
export function outboundSettings(given: OutboundOptions): OutboundSettings {
  const known = [...Object.keys(NUMBERS), ...Object.keys(DURATIONS), ...FUNCTIONS, ...OTHERS]
  const options = checkOptions(given, known, EXAMPLE, 'limitedFetch() and limited()')
  const numbers = { ...numbersIn(options), ...durationsIn(options) }
  for (const name of FUNCTIONS) checkFunction(name, options[name])
  const { policy, policyFor, limiter, clock = preciseClock() } = options
  const random = (): number => Math.random()
  checkClock(clock)
  if (limiter !== undefined) {
    if (typeof limiter?.wait !== 'function') {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as createLimiter(policy)')
    }
    if (policy !== undefined || policyFor !== undefined) {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'has its own policies: give one or the other')
    }
  }
  checkCost(options)
  const { backoffMs, jitter } = numbers
  return { ...numbers, given: options, clock, pace: { backoffMs, maxBackoffMs: MAX_BACKOFF_MS, jitter, longestPauseMs: DAY_MS, random } }
}

function checkCost({ policy, policyFor, limiter, cost, costOf }: OutboundOptions): void {
  const option = cost === undefined ? 'costOf' : 'cost'
  if (cost === undefined && costOf === undefined) return
  if (policy === undefined && policyFor === undefined && limiter === undefined) {
    throw new PolicyError('OPTION_INVALID', option, cost, 'needs a limit: policy, policyFor or limiter')
  }
  if (cost === undefined) return
  const metered = meteredBy(cost)
  if (metered === undefined) throw new PolicyError('COST_INVALID', option, cost, "must be 'metered', or how to open a hold")
  checkMetered(metered, limiter)
  const own = limiter?.policy ?? policy
  if (own !== undefined) requireNoPermits([own])
}

function numbersIn(options: OutboundOptions): Numbers {
  const names = Object.keys(NUMBERS) as (keyof Numbers)[]
  return Object.fromEntries(names.map((name) => [name, checkedNumber(name, options[name])])) as Numbers
}

function durationsIn(options: OutboundOptions): Durations {
  const all = Object.entries(DURATIONS) as [keyof typeof DURATIONS, { otherwise: number; least: number; most: number }][]
  const checked = all.map(([name, { otherwise, least, most }]) => [`${name}Ms`, checkedMs(name, options[name] ?? otherwise, least, most)])
  return Object.fromEntries(checked) as Durations
}

function checkedNumber(name: keyof Numbers, value: unknown): number {
  const { otherwise, least, most, isWhole } = NUMBERS[name]
  if (value === undefined) return otherwise
  if (isWhole && value !== most) checkInteger(name, value, least, most)
  else checkNumber(name, value, least, most)
  return value
}

/** Counters since creation, and the current state. */
export interface OutboundStats {
  /** Keys in memory. */
  readonly keys: number
  readonly waiting: number
  /** Sent and not answered yet. */
  readonly inFlight: number
  /** Attempts that were sent. */
  readonly sent: number
  /** Those of them that were not the first attempt. */
  readonly retried: number
  /** Refusals that lowered a rate. */
  readonly throttled: number
}

/** The state of one key. */
export interface KeyStats {
  readonly waiting: number
  readonly inFlight: number
  /** The learned rate; `Infinity` before the first refusal. */
  readonly perSecond: number
  /** Milliseconds until a request may be sent: a pause, or an exhausted quota. */
  readonly pauseMs: number
  /** What the server announced last. */
  readonly remaining: number | undefined
}

/** The methods of a limited fetch and of a limited dispatcher. */
export interface OutboundControls {
  stats(): OutboundStats
  /** The state of a key; undefined for an unknown key. */
  statsOf(key: string): KeyStats | undefined
  /**
   * Forgets what the server of a key announced, its pauses, and the learned rate: waiting requests go on as to an unknown host. The key's
   * own limit is unchanged. False for an unknown key.
   */
  forget(key: string): boolean
  /** Rejects all waiting requests, also those between two attempts, and all later ones with `CLOSED`. Requests under way continue. */
  close(): void
}

/** The methods as standalone functions. */
export function controlsOf(queues: OutboundControls): OutboundControls {
  return {
    stats: () => queues.stats(),
    statsOf: (key) => queues.statsOf(key),
    forget: (key) => queues.forget(key),
    close: () => queues.close(),
  }
}
