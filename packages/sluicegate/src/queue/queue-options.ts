import { checkedCost, type TurnOptions, type WaitOptions } from '../arguments.js'
import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import type { OpenOptions } from '../holds/hold.js'
import { type AnyHold, checkMetered, type HoldOpener, type Metered, meteredBy } from '../holds/metered.js'
import { checkKey, isByName, type Key, type KeysByName, keyInOrder, ownKey } from '../key.js'
import { checkFunction, checkInteger, checkOneOf, checkOptions, checkSignal } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { checkedMs, type Duration } from '../time/duration.js'

/** What a full queue does with one job more. */
export type Overflow = 'refuse-newest' | 'drop-oldest' | 'drop-lowest-priority'

/** What a queue asks of a limiter: limiters in memory, in Redis and of a cluster have it all. */
export interface QueueLimiter extends HoldOpener {
  readonly policy: Policy
  /** The policy in force for a key, where that may be another. */
  policyOf?(key: Key): Policy
  take(key: Key, cost?: number): Awaitable<Decision>
  wait(key: Key, options?: WaitOptions): Promise<Decision>
  refund(key: Key, tokens: number): Awaitable<Decision>
  penalize(key: Key, tokens: number): Awaitable<Decision>
}

/** Options of a queue. */
export interface QueueOptions extends Pick<RunOptions, 'maxWait' | 'timeout'>, Pick<TurnOptions, 'maxWaiting'> {
  /**
   * Jobs that run at once in this process, over all keys: an integer >= 1. Across processes use the policy `concurrency`. Of `limitedFetch` requests of a
   * key that are under way at once, each to the end of its response's body.
   *
   * @defaultValue no bound
   * @example createQueue(limiter, { concurrency: 5 })
   */
  readonly concurrency?: number
  /**
   * `maxWaiting` for each key.
   *
   * @defaultValue `maxWaiting`
   * @example createQueue(limiter, { maxWaitingPerKey: 10 })
   */
  readonly maxWaitingPerKey?: number
  /**
   * One job more than fit: `refuse-newest` rejects it with `QUEUE_FULL`; `drop-oldest` rejects the longest waiting job of the lowest
   * priority with `DROPPED`; `drop-lowest-priority` does so only for a job of higher priority.
   *
   * @defaultValue `'refuse-newest'`
   * @example createQueue(limiter, { overflow: 'drop-oldest' })
   */
  readonly overflow?: Overflow
}

/** Options of one job. */
export interface RunOptions extends Omit<WaitOptions, 'cost'> {
  /** {@link WaitOptions.cost} */
  readonly cost?: number | Metered
  /**
   * Jobs with a higher number start first; of equal ones the first that came. Of `limitedFetch` a function of the request: what it returns orders the
   * requests of a key.
   *
   * @defaultValue `0`
   * @example await limiter.run('ada', job, { priority: 10 })
   */
  readonly priority?: number
  /**
   * The job is rejected with `TIMEOUT`, and `job.signal` aborts, if it runs longer. Of a queue: every job without its own.
   *
   * @defaultValue no bound
   * @example await limiter.run('ada', job, { timeout: '10s' })
   */
  readonly timeout?: Duration
}

/** Options of a wrapped function. */
export interface WrapOptions<Args extends unknown[], Result = unknown> extends RunOptions {
  /**
   * The key of a call, or a function of its arguments.
   *
   * @defaultValue `'default'`: all calls share one budget
   * @example limiter.wrap(send, { key: (user: string) => user })
   */
  readonly key?: Key | KeysByName | ((...args: Args) => Key | KeysByName)
  /**
   * What a call cost, by its result. The wrapped function does not see its job: under `cost: 'metered'` this spends, otherwise it corrects `cost`.
   *
   * @defaultValue none
   * @example limiter.wrap(ask, { cost: 'metered', costOf: (answer) => answer.usage.total_tokens })
   */
  readonly costOf?: (result: Awaited<Result>) => number
}

/** What a running job knows of itself. */
export interface RunningJob {
  /** Aborts when the caller's signal does, and when `timeout` is over. */
  readonly signal: AbortSignal
  /** The decision that let it start. */
  readonly decision: Decision
  /** Of a job under `cost: 'metered'`: what it spends as it goes. Undefined for a cost in numbers. */
  readonly hold: AnyHold | undefined
  /**
   * Corrects the cost once it is known: below the estimate the rest is refunded, above it the difference is charged. A second call does nothing.
   *
   * Awaited, it rejects with `PolicyError` for what is no integer >= 0, and under `concurrency`, and with `StoreError`. Not awaited, it never ends
   * the process: the estimate stays charged, and a warning names the policy once.
   *
   * @param actualCost tokens, an integer >= 0.
   */
  settle(actualCost: number): Promise<void>
}

/** {@link QueueOptions}, checked and complete. */
export interface QueueSettings {
  readonly concurrency: number
  readonly maxWaiting: number
  readonly maxWaitingPerKey: number
  readonly overflow: Overflow
  readonly maxWaitMs: number
  readonly timeoutMs: number
}

/** Tokens, or how to open a hold: of one object for each `cost: 'metered'`, as jobs of one cost are admitted in turn. */
export type Cost = number | OpenOptions

/** {@link RunOptions}, checked and complete. */
export interface RunSettings {
  readonly cost: Cost
  readonly priority: number
  readonly signal: AbortSignal | undefined
  readonly maxWaitMs: number
  readonly timeoutMs: number
}

const DEFAULT_MAX_QUEUED = 10_000
const MOST_QUEUED = 1_000_000
const OVERFLOWS: readonly unknown[] = ['refuse-newest', 'drop-oldest', 'drop-lowest-priority'] satisfies Overflow[]
const QUEUE_OPTIONS: readonly string[] = [
  'concurrency',
  'maxWaiting',
  'maxWaitingPerKey',
  'overflow',
  'maxWait',
  'timeout',
] satisfies (keyof QueueOptions)[]
const RUN_OPTIONS: readonly string[] = ['cost', 'priority', 'signal', 'maxWait', 'timeout'] satisfies (keyof RunOptions)[]
const WRAP_OPTIONS: readonly string[] = [...RUN_OPTIONS, 'key', 'costOf']

/** @throws {PolicyError} `OPTION_UNKNOWN` or `OPTION_INVALID` */
export function checkedQueueOptions(given: QueueOptions): QueueSettings {
  const options = checkOptions(given, QUEUE_OPTIONS, '{ concurrency: 2 }', 'createQueue()')
  const { concurrency = Number.POSITIVE_INFINITY, maxWaiting = DEFAULT_MAX_QUEUED, overflow = 'refuse-newest' } = options
  const { maxWaitingPerKey = maxWaiting, maxWait = Number.POSITIVE_INFINITY, timeout = Number.POSITIVE_INFINITY } = options
  if (concurrency !== Number.POSITIVE_INFINITY) checkInteger('concurrency', concurrency, 1)
  checkInteger('maxWaiting', maxWaiting, 0, MOST_QUEUED)
  checkInteger('maxWaitingPerKey', maxWaitingPerKey, 0, MOST_QUEUED)
  checkOneOf('overflow', overflow, OVERFLOWS)
  const maxWaitMs = checkedMs('maxWait', maxWait, 0)
  const timeoutMs = checkedMs('timeout', timeout, 1)
  return { concurrency, maxWaiting, maxWaitingPerKey, overflow, maxWaitMs, timeoutMs }
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` or `COST_INVALID` */
export function checkedRunOptions(given: RunOptions, defaults: QueueSettings): RunSettings {
  const options = checkOptions(given, RUN_OPTIONS, '{ priority: 1 }', 'run()')
  const { cost = 1, priority = 0, signal, maxWait = defaults.maxWaitMs, timeout = defaults.timeoutMs } = options
  if (typeof priority !== 'number' || !Number.isFinite(priority)) {
    throw new PolicyError('OPTION_INVALID', 'priority', priority, 'must be a finite number; higher starts first')
  }
  checkSignal(signal)
  const maxWaitMs = checkedMs('maxWait', maxWait, 0)
  const timeoutMs = checkedMs('timeout', timeout, 1)
  return { cost: checkedJobCost(cost), priority, signal, maxWaitMs, timeoutMs }
}

/** @throws {PolicyError} `COST_INVALID`, and what `open` throws */
function checkedJobCost(cost: number | Metered): Cost {
  const metered = meteredBy(cost)
  if (metered === undefined) return checkedCost(cost)
  checkMetered(metered)
  return metered
}

/**
 * The options of a wrapped function, apart from its key.
 *
 * @throws {PolicyError} as {@link checkedRunOptions}, when the function is wrapped
 */
export function checkedWrapOptions<Args extends unknown[], Result>(
  wrapOptions: WrapOptions<Args, Result>,
  defaults: QueueSettings,
): {
  readonly options: RunOptions
  readonly keyOf: (args: Args) => Key | KeysByName
  readonly costOf: ((result: Awaited<Result>) => number) | undefined
} {
  const { key = 'default', costOf, ...options } = checkOptions(wrapOptions, WRAP_OPTIONS, "{ key: 'user:42' }", 'wrap()')
  checkFunction('costOf', costOf, 'must be a function of what the wrapped function returns')
  checkedRunOptions(options, defaults)
  if (typeof key === 'function') return { options, keyOf: (args) => key(...args), costOf }
  if (!isByName(key)) checkKeys(key)
  return { options, keyOf: () => key, costOf }
}

/** A key as the limiter's policies are in order. @throws {PolicyError} `KEY_INVALID` */
export function keyOfJob(limiter: QueueLimiter, key: Key | KeysByName): Key {
  const names = isByName(key) ? (limiter.policy.policies ?? []).map(({ name }) => name) : []
  const own = keyInOrder(names, key)
  checkKeys(own)
  return ownKey(own)
}

/** @throws {PolicyError} `KEY_INVALID` */
function checkKeys(key: Key): void {
  if (Array.isArray(key)) for (const each of key) checkKey(each)
  else checkKey(key)
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkWork(fn: unknown): void {
  if (typeof fn === 'function') return
  const mend = fn instanceof Promise ? 'must be a function that starts the work: () => work(), and not work()' : 'must be a function'
  throw new PolicyError('OPTION_INVALID', 'fn', fn, mend)
}

/** Options of a queue that belongs to no limiter's own: its clock, the limiter's where it is not given. */
export interface OwnQueueOptions extends QueueOptions, Pick<TurnOptions, 'clock'> {}
