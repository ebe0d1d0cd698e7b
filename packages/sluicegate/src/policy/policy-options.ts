import { PolicyError } from '../errors.js'
import { isInteger } from '../options/option-checks.js'
import { type Duration, formatMs, toMs } from '../time/duration.js'
import { warnOnce } from '../warn-once.js'
import type { Algorithm, Policy } from './policy.js'

// What the functions that make policies check alike.

export const MAX_NAME_LENGTH = 120
const MIN_WINDOW_MS = 1
export const MAX_WINDOW_MS = 366 * 86_400_000
const CALENDAR = "; only fixedWindow() also takes 'day', 'week', 'month', 'year'"
/** Numbers below it may have been meant in seconds. */
const SHORT_MS = 1000
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/

const warn = /* @__PURE__ */ warnOnce()

/** @throws {PolicyError} `LIMIT_INVALID` or `BURST_INVALID` */
export function checkedTokenCount(option: 'limit' | 'burst', value: unknown, most: number, isPerWindow = option === 'limit'): number {
  if (isInteger(value, 1, most)) return value
  // Neither a burst nor those in flight are per window.
  const fraction = isPerWindow && typeof value === 'number' && value > 0 && value < most
  const mend = fraction
    ? 'must be a whole number: widen the window instead, 0.35 a second is 7 per 20s'
    : `must be an integer from 1 to ${most}`
  throw new PolicyError(option === 'limit' ? 'LIMIT_INVALID' : 'BURST_INVALID', option, value, mend)
}

/** The window of a policy as an option: once made, it is meant. */
export function meantWindow(windowMs: number): Duration {
  return windowMs >= MIN_WINDOW_MS && windowMs < SHORT_MS ? `${windowMs}ms` : windowMs
}

/**
 * The window in milliseconds.
 *
 * @throws {PolicyError} `WINDOW_INVALID`
 */
export function checkedWindowMs(window: Duration, option = 'window'): number {
  const windowMs = toMs(window, option, 'WINDOW_INVALID', option === 'window' ? CALENDAR : '')
  const us = Math.round(windowMs * 1000)
  if (windowMs < MIN_WINDOW_MS || windowMs > MAX_WINDOW_MS || !isNearly(windowMs * 1000, us)) {
    throw new PolicyError('WINDOW_INVALID', option, window, 'must be from 1 ms to 366 days, in whole microseconds')
  }
  if (typeof window === 'number' && window < SHORT_MS && option !== 'windowMs')
    warn(
      'SLUICEGATE_SHORT_WINDOW',
      `${option}: ${window} is ${window} ms, as a number is milliseconds: say '${window}s' for seconds, '${window}ms' if it is meant`,
      `${option}: ${window}`,
    )
  return us / 1000
}

/**
 * The name, or the default one.
 *
 * @throws {PolicyError} `NAME_INVALID`
 */
export function checkedName(name: unknown, otherwise: string): string {
  const given = name ?? otherwise
  if (typeof given === 'string' && given.length <= MAX_NAME_LENGTH && PRINTABLE_ASCII.test(given)) return given
  throw new PolicyError('NAME_INVALID', 'name', name, `must be 1 to ${MAX_NAME_LENGTH} printable ASCII characters`)
}

export function defaultName(algorithm: Algorithm, limit: number, windowMs: number): string {
  return `${algorithm}-${limit}-${formatMs(windowMs)}`
}

/** Whether a policy goes by the name that its numbers give it. */
export function hasDefaultName({ algorithm, limit, windowMs, calendar, name, policies }: Policy): boolean {
  if (policies !== undefined) return name === `all-of-${policies.length}`
  return name === (calendar === undefined ? defaultName(algorithm, limit, windowMs) : `${algorithm}-${limit}-${calendar.unit}`)
}

/** Equal up to what doubles lose on the way: 17417771096.719 ms is whole microseconds, though its product is not. */
function isNearly(a: number, b: number): boolean {
  return Math.abs(a - b) <= b * 2 ** -50
}
