import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import type { Duration } from '../time/duration.js'
import { CALENDAR_UNITS, type CalendarUnit, calendarOf, longestMs } from './calendar.js'
import { frozenPolicy, type Policy, type PolicyFields } from './policy.js'
import { checkedName, checkedTokenCount, checkedWindowMs, defaultName } from './policy-options.js'

/** What {@link fixedWindow} takes. */
export interface FixedWindowOptions {
  /** Tokens a window: an integer from 1 to 1,000,000,000. */
  readonly limit: number
  /**
   * From 1 ms to 366 days, aligned to UTC; or a `day`, `week` (from Monday), `month` or `year` of the calendar, from whole minute to whole
   * minute.
   */
  readonly window: Duration | CalendarUnit
  /** Of a window of the calendar: the IANA name of its time zone, default `UTC`. */
  readonly timeZone?: string
  /** Printable ASCII, 1 to 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name?: string
}

/** What {@link slidingWindow} takes. */
export interface SlidingWindowOptions {
  /** Tokens a window: an integer from 1 to 1,000,000,000. */
  readonly limit: number
  /** From 1 ms to 366 days. */
  readonly window: Duration
  /**
   * `exact` (default), or `compact`: floating counters in one word also for large limits. The count of a window is exact up to 65,536
   * tokens and right on average beyond, with a standard error below 0.4 %; that of the window before is exact up to 1,024, and beyond at
   * most 0.2 % too high.
   */
  readonly counters?: 'exact' | 'compact'
  /** Printable ASCII, 1 to 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name?: string
}

/** What {@link slidingLog} takes. */
export interface SlidingLogOptions {
  /** Tokens in any window: an integer from 1 to 100,000. Each key's history takes `limit` slots. */
  readonly limit: number
  /** From 1 ms to 366 days. */
  readonly window: Duration
  /** Bytes a slot: 8 (default) holds a request of any cost, 4 one token of it, so that 4 is for costs of 1. An `update` has to keep it. */
  readonly slotBytes?: 4 | 8
  /** Printable ASCII, 1 to 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name?: string
}

const MAX_LIMIT = 1_000_000_000
const MAX_LOG_LIMIT = 100_000

/**
 * Fixed window: at most `limit` in each window, and windows follow each other from the Unix epoch on, in UTC, or in the calendar
 * of a time zone. Around the end of a window up to `2 * limit` pass in a short time; sliding windows are there to avoid that.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example fixedWindow({ limit: 10_000, window: 'month', timeZone: 'Europe/Rome' }) // a quota
 */
export function fixedWindow(options: FixedWindowOptions): Policy {
  checkOptions(options, ['limit', 'window', 'timeZone', 'name'], '{ limit: 1000, window: "1m" }', 'fixedWindow()')
  const limit = checkedTokenCount('limit', options.limit, MAX_LIMIT)
  const { window, timeZone } = options
  if ((CALENDAR_UNITS as readonly unknown[]).includes(window)) {
    const calendar = calendarOf(window as CalendarUnit, timeZone)
    const name = checkedName(options.name, `fixed-window-${limit}-${window}`)
    return frozenPolicy({ algorithm: 'fixed-window', name, limit, windowMs: longestMs(calendar.unit), burst: limit, calendar })
  }
  if (timeZone !== undefined) {
    throw new PolicyError('OPTION_INVALID', 'timeZone', timeZone, "is for windows of the calendar: 'day', 'week', 'month' or 'year'")
  }
  const windowMs = checkedWindowMs(window as Duration)
  const name = checkedName(options.name, defaultName('fixed-window', limit, windowMs))
  return frozenPolicy({ algorithm: 'fixed-window', name, limit, windowMs, burst: limit })
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
export function slidingWindow(options: SlidingWindowOptions): Policy {
  checkOptions(options, ['limit', 'window', 'counters', 'name'], '{ limit: 1000, window: "1m" }', 'slidingWindow()')
  const limit = checkedTokenCount('limit', options.limit, MAX_LIMIT)
  const windowMs = checkedWindowMs(options.window)
  const { counters = 'exact' } = options
  if (counters !== 'exact' && counters !== 'compact') {
    throw new PolicyError('OPTION_INVALID', 'counters', counters, "must be 'exact' or 'compact'")
  }
  const name = checkedName(options.name, defaultName('sliding-window', limit, windowMs))
  const policy: PolicyFields = { algorithm: 'sliding-window', name, limit, windowMs, burst: limit }
  return frozenPolicy(counters === 'compact' ? { ...policy, counters } : policy)
}

/**
 * Sliding log: the time of every request that passed, so that no window in any position ever holds more than `limit`, and none
 * holds fewer while demand lasts. Exact, at `limit` slots of memory a key.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example slidingLog({ limit: 100, window: '10s' })
 */
export function slidingLog(options: SlidingLogOptions): Policy {
  checkOptions(options, ['limit', 'window', 'slotBytes', 'name'], '{ limit: 100, window: "10s" }', 'slidingLog()')
  const limit = checkedTokenCount('limit', options.limit, MAX_LOG_LIMIT)
  const windowMs = checkedWindowMs(options.window)
  const { slotBytes = 8 } = options
  if (slotBytes !== 4 && slotBytes !== 8) throw new PolicyError('OPTION_INVALID', 'slotBytes', slotBytes, 'must be 4 or 8')
  const name = checkedName(options.name, defaultName('sliding-log', limit, windowMs))
  return frozenPolicy({ algorithm: 'sliding-log', name, limit, windowMs, burst: limit, slotBytes })
}
