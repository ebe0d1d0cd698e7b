import { PolicyError } from '../errors.js'
import { asGiven, checkOptions } from '../options/option-checks.js'
import { guideFor } from '../options/unknown-option.js'
import type { Duration } from '../time/duration.js'
import { CALENDAR_UNITS, type CalendarUnit, calendarOf, longestMs } from './calendar.js'
import { type Algorithm, type ConcurrencyPolicy, frozenPolicy, type Policy } from './policy.js'
import { emissionOf, numbersOf } from './policy-numbers.js'
import { checkedName, checkedTokenCount, checkedWindowMs, defaultName, meantWindow } from './policy-options.js'

/** What every policy takes. */
interface PolicyOptions {
  /**
   * Tokens per window: an integer from 1 up to the largest (docs/which-limiter.md) of its window, of a log to 100,000. Of `concurrency` the permits
   * that may be held at once, to 10,000; of `credits` the tokens of a new key, and the most that it ever has.
   *
   * @defaultValue required
   * @example tokenBucket({ limit: 100, window: '1s' })
   */
  readonly limit: number
  /**
   * The time in which `limit` tokens refill, or are counted: from 1 ms to 366 days. Of `fixedWindow` aligned to UTC; or a `day`, `week` (from Monday),
   * `month` or `year` of the calendar, from whole minute to whole minute.
   *
   * @defaultValue required
   * @example fixedWindow({ limit: 10_000, window: 'month' })
   */
  readonly window: Duration
  /**
   * The name in decisions, headers, messages and keys of stores: printable ASCII, 1 to 120 characters.
   *
   * @defaultValue `<algorithm>-<limit>-<window>`
   * @example tokenBucket({ limit: 100, window: '1s', name: 'api' })
   */
  readonly name?: string
}

/** What {@link tokenBucket} and {@link gcra} take. */
export interface RateOptions extends PolicyOptions {
  /**
   * Tokens that may be spent at once: an integer from 1 to 750,599,937,895,082, as many as refill in 23 years.
   *
   * @defaultValue `limit`
   * @example tokenBucket({ limit: 100, window: '1s', burst: 200 })
   */
  readonly burst?: number
}

const MAX_LIMIT = Number.MAX_SAFE_INTEGER
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
  const checked = checkOptions(options, OPTIONS, '{ limit: 100, window: "1s" }', algorithm === 'gcra' ? 'gcra()' : 'tokenBucket()')
  const limit = checkedTokenCount('limit', checked.limit, MAX_LIMIT)
  const burst = checked.burst === undefined ? limit : checkedTokenCount('burst', checked.burst, MAX_LIMIT)
  const windowMs = checkedWindowMs(checked.window)
  const name = checkedName(checked.name, defaultName(algorithm, limit, windowMs))
  const policy = frozenPolicy({ algorithm, name, limit, windowMs, burst })
  emissionOf(policy) // refuses here what no state word can hold
  return policy
}

/** What {@link fixedWindow} takes. */
interface FixedWindowOptions extends Omit<PolicyOptions, 'window'> {
  /** {@link PolicyOptions.window} */
  readonly window: Duration | CalendarUnit
  /**
   * Of a window of the calendar: the IANA name of its time zone.
   *
   * @defaultValue `'UTC'`
   * @example fixedWindow({ limit: 500, window: 'day', timeZone: 'Europe/Rome' })
   */
  readonly timeZone?: string
}

const MAX_LOG_LIMIT = 100_000

/**
 * Fixed window: at most `limit` in each window, and windows follow each other from the Unix epoch on, in UTC, or in the calendar
 * of a time zone. Around the end of a window up to `2 * limit` pass in a short time; sliding windows are there to avoid that.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example fixedWindow({ limit: 10_000, window: 'month', timeZone: 'Europe/Rome' }) // a quota
 */
export function fixedWindow(options: FixedWindowOptions): Policy {
  const checked = checkOptions(options, ['limit', 'window', 'timeZone', 'name'], '{ limit: 1000, window: "1m" }', 'fixedWindow()')
  const limit = checkedTokenCount('limit', checked.limit, MAX_LIMIT)
  const { window, timeZone } = checked
  if ((CALENDAR_UNITS as readonly unknown[]).includes(window)) {
    const calendar = calendarOf(window as CalendarUnit, timeZone)
    const name = checkedName(checked.name, `fixed-window-${limit}-${window}`)
    return frozenPolicy({ algorithm: 'fixed-window', name, limit, windowMs: longestMs(calendar.unit), burst: limit, calendar })
  }
  if (timeZone !== undefined) {
    throw new PolicyError('OPTION_INVALID', 'timeZone', timeZone, "is for windows of the calendar: 'day', 'week', 'month' or 'year'")
  }
  const windowMs = checkedWindowMs(window as Duration)
  const name = checkedName(checked.name, defaultName('fixed-window', limit, windowMs))
  return counted(frozenPolicy({ algorithm: 'fixed-window', name, limit, windowMs, burst: limit }))
}

/**
 * Credits: tokens that never come back by themselves. `refund` is a top-up, `penalize(key, limit)` empties an account that is to begin with nothing.
 * A denial has `retryAfterMs: Infinity`, as waiting does not help. Keep them in a store that keeps its data; there they are not leased, as what a
 * process that dies has leased would be lost.
 *
 * @throws {PolicyError} `LIMIT_INVALID`, `NAME_INVALID`
 * @example
 * const prepaid = createLimiter(credits({ limit: 100_000 }), { store: postgres(pool) })
 * await prepaid.refund('ada', 5_000)
 */
export function credits(options: Omit<PolicyOptions, 'window'>): Policy {
  const { limit, name } = checkOptions(options, ['limit', 'name'], '{ limit: 5000 }', 'credits()')
  return fixedWindow({ limit, window: 'ever', name: name ?? `credits-${limit}` })
}

/**
 * Approximated sliding window: the count of this window, plus that of the window before, weighted by how much of it the sliding
 * window still covers. At most `limit` in each aligned window and fewer than `2 * limit` in any position.
 *
 * Source: "How we built rate limiting capable of scaling to millions of domains", Cloudflare, 2017.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example slidingWindow({ limit: 1000, window: '1m' })
 */
export function slidingWindow(options: PolicyOptions): Policy {
  const checked = checkOptions(options, ['limit', 'window', 'name'], '{ limit: 1000, window: "1m" }', 'slidingWindow()')
  const limit = checkedTokenCount('limit', checked.limit, MAX_LIMIT)
  const windowMs = checkedWindowMs(checked.window)
  const name = checkedName(checked.name, defaultName('sliding-window', limit, windowMs))
  return counted(frozenPolicy({ algorithm: 'sliding-window', name, limit, windowMs, burst: limit }))
}

/** The policy, if a state word can hold its counts. */
function counted(policy: Policy): Policy {
  numbersOf(policy)
  return policy
}

/**
 * Sliding log: the time of every request that passed, so that no window in any position ever holds more than `limit`, and none
 * holds fewer while demand lasts. Exact, at `limit` slots of memory a key.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example slidingLog({ limit: 100, window: '10s' })
 */
export function slidingLog(options: PolicyOptions): Policy {
  const checked = checkOptions(options, ['limit', 'window', 'name'], '{ limit: 100, window: "10s" }', 'slidingLog()')
  const limit = checkedTokenCount('limit', checked.limit, MAX_LOG_LIMIT)
  const windowMs = checkedWindowMs(checked.window)
  const name = checkedName(checked.name, defaultName('sliding-log', limit, windowMs))
  return frozenPolicy({ algorithm: 'sliding-log', name, limit, windowMs, burst: limit })
}

/** What {@link concurrency} takes. */
interface ConcurrencyOptions extends Omit<PolicyOptions, 'window'> {
  /**
   * The time after which a permit that was neither released nor renewed returns, from 1 ms to 366 days.
   *
   * @defaultValue `'30s'`
   * @example concurrency({ limit: 20, ttl: '2m' })
   */
  readonly ttl?: Duration
}

const MAX_PERMITS = 10_000

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
  const checked = checkOptions(options, ['limit', 'ttl', 'name'], '{ limit: 20, ttl: "30s" }', 'concurrency()')
  const limit = checkedTokenCount('limit', checked.limit, MAX_PERMITS, false)
  const windowMs = checkedWindowMs(checked.ttl ?? '30s', 'ttl')
  const name = checkedName(checked.name, defaultName('concurrency', limit, windowMs))
  return frozenPolicy<ConcurrencyPolicy>({ algorithm: 'concurrency', name, limit, windowMs, burst: limit })
}

/** Makes a policy again from the fields of one. */
export type PolicyMaker = (policy: Policy) => Policy

/** Makers of all algorithms but `allOf`: each refuses wrong fields, and names the one that is wrong. */
export const SINGLE_POLICIES: Readonly<Record<Exclude<Algorithm, 'all-of'>, PolicyMaker>> = {
  'token-bucket': ({ limit, windowMs, burst, name }) => tokenBucket({ limit, window: meantWindow(windowMs), burst, name }),
  gcra: ({ limit, windowMs, burst, name }) => gcra({ limit, window: meantWindow(windowMs), burst, name }),
  'fixed-window': ({ limit, windowMs, calendar, name }) =>
    calendar === undefined
      ? fixedWindow({ limit, window: meantWindow(windowMs), name })
      : fixedWindow({ limit, window: calendar.unit, timeZone: calendar.timeZone, name }),
  'sliding-window': ({ limit, windowMs, name }) => slidingWindow({ limit, window: meantWindow(windowMs), name }),
  'sliding-log': ({ limit, windowMs, name }) => slidingLog({ limit, window: meantWindow(windowMs), name }),
  concurrency: ({ limit, windowMs, name }) => concurrency({ limit, ttl: meantWindow(windowMs), name }),
}

const FIELDS: ReadonlySet<string> = new Set([
  'algorithm',
  'name',
  'limit',
  'windowMs',
  'burst',
  'calendar',
  'policies',
] satisfies (keyof Policy)[])

/**
 * The policy, made again by the maker of its algorithm.
 *
 * @param takenBy the function that takes it, for the message: `createLimiter`.
 * @throws {PolicyError} `POLICY_INVALID`; `OPTION_UNKNOWN` for a field that no policy has
 */
export function remadePolicy(makers: Readonly<Record<string, PolicyMaker>>, policy: unknown, option: string, takenBy?: string): Policy {
  const { algorithm } = (policy ?? {}) as Partial<Policy>
  const maker = typeof algorithm === 'string' && Object.hasOwn(makers, algorithm) ? makers[algorithm] : undefined
  if (maker === undefined || !isMade(policy as object))
    throw new PolicyError('POLICY_INVALID', option, policy, `must be made by ${makerFor(policy, takenBy)}`)
  const own = asGiven(policy as Policy, [...FIELDS])
  const beside = besideFields(own)
  if (beside.length > 0) throw notOfPolicy(policy as object, beside, takenBy && `${takenBy}(policy, { ${beside.join(', ')} })`)
  return maker(own)
}

/** Whether an object with an `algorithm` may come of a maker, and is not what a file of configuration has. */
export function isMade(policy: object): boolean {
  return 'windowMs' in policy || 'policies' in policy
}

/** What an object that has the fields of a policy has beside them. */
export function besideFields(policy: object): string[] {
  return Object.keys(policy).filter((name) => !FIELDS.has(name))
}

/** @param instead how to write what was meant. */
export function notOfPolicy(policy: object, beside: readonly string[], instead = 'give policies and options apart'): PolicyError {
  const mend = `is no part of a policy, where it would count for nothing: ${instead}`
  return new PolicyError('OPTION_UNKNOWN', beside[0] as string, policy[beside[0] as never], mend)
}

function makerFor(policy: unknown, takenBy: string | undefined): string {
  const siblings = 'tokenBucket(), slidingWindow() or one of their siblings'
  if (typeof policy === 'function') return `${siblings}: call it, tokenBucket({ limit: 100, window: '1m' })`
  if (typeof policy !== 'object' || policy === null) return siblings
  if ('then' in policy) return `${siblings}: await it`
  if ('policy' in policy && takenBy !== undefined) return `${siblings}: say ${takenBy}(policy, options)`
  const guide = guideFor(Object.keys(policy))
  if (guide !== undefined) return `${siblings}; ${guide}`
  const numbers = Object.keys(policy).filter((name) => name === 'limit' || name === 'window' || name === 'ttl')
  if (numbers.length === 0) return siblings
  const { algorithm = 'token-bucket' } = policy as { readonly algorithm?: unknown }
  const maker = Object.hasOwn(SINGLE_POLICIES, String(algorithm)) ? String(algorithm) : 'token-bucket'
  const name = maker.replace(/-./, (letter) => letter.slice(1).toUpperCase())
  const made = `${name}({ ${numbers.length === 2 ? numbers.join(', ') : "limit: 100, window: '1m'"} })`
  return `${siblings}: say ${takenBy === undefined ? made : `${takenBy}(${made})`}`
}
