import { httpDateMs, offsetDateMs } from './http-date.js'

const LONGEST = 256
const LONGEST_COUNTS = 1_024
/** A value between commas; a date has a comma after the day of the week. */
const ONE_TIME = /\s*[A-Za-z]{3,9},[^,]*|[^,]+/g
const NUMBER = /^\d{1,16}(?:\.\d{1,9})?$/
const AGE = /^[ \t]*(\d+)[ \t]*(?:,|$)/
const COUNT = /^(\d{1,15})(?:\.\d{1,9})?(?=$|[,;])/
const DURATION = /^(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?$/

/** Numbers from here on are moments, below it durations: as seconds this is the year 2001, and no quota lasts thirty years. */
const LEAST_EPOCH_S = 1e9
/** From here on milliseconds: the year 1973, which as seconds would be 5138. */
const LEAST_EPOCH_MS = 1e11
/** The same between milliseconds and microseconds. */
const LEAST_EPOCH_US = 1e14

/** A whole number of tokens; fractions are cut off, and a list begins with it. */
export function readCount(text: string | undefined): number | undefined {
  const found = text === undefined || text.length > LONGEST_COUNTS ? null : COUNT.exec(text.trim())
  return found === null ? undefined : Number(found[1])
}

/** The least of several such numbers, such as those of two joined lines. */
export function readLeast(text: string | undefined): number | undefined {
  if (text === undefined || text.length > LONGEST_COUNTS) return undefined
  const counts = text.split(',').flatMap((each) => readCount(each) ?? [])
  return counts.length === 0 ? undefined : Math.min(...counts)
}

/**
 * `Retry-After` in milliseconds from now: seconds, with an optional fraction, or a date. Of several values, such as those of two joined
 * lines, the longest.
 *
 * Source: RFC 9110, section 10.2.3.
 *
 * @param nowMs Unix time on the server's clock.
 */
export function readDelayMs(text: string | undefined, nowMs: number): number | undefined {
  return longest(text, (value) => (NUMBER.test(value) ? Math.ceil(Number(value) * 1000) : untilMs(httpDateMs(value, nowMs), nowMs)))
}

/**
 * A reset in milliseconds from now, of several the longest. Servers write a duration in seconds, a moment in Unix time, which is recognised
 * by its size, a date, or a duration such as `6m0s`.
 */
export function readResetMs(text: string | undefined, nowMs: number): number | undefined {
  return longest(text, (value) => singleResetMs(value, nowMs))
}

function singleResetMs(value: string, nowMs: number): number | undefined {
  if (NUMBER.test(value)) {
    const number = Number(value)
    if (number < LEAST_EPOCH_S) return Math.ceil(number * 1000)
    return untilMs(number < LEAST_EPOCH_MS ? number * 1000 : number < LEAST_EPOCH_US ? number : number / 1000, nowMs)
  }
  return durationMs(value) ?? untilMs(offsetDateMs(value) ?? httpDateMs(value, nowMs), nowMs)
}

/** A number of milliseconds. */
export function readMs(text: string | undefined): number | undefined {
  const value = trimmed(text)
  return value !== undefined && NUMBER.test(value) ? Math.ceil(Number(value)) : undefined
}

/**
 * `Age` in milliseconds; 0 if it is absent or malformed. Of several values the first.
 *
 * Source: RFC 9111, sections 1.2.2 and 5.1.
 */
export function readAgeMs(text: string | undefined): number {
  const [, seconds = '0'] = (text === undefined || text.length > LONGEST ? null : AGE.exec(text)) ?? []
  return Math.min(Number(seconds), 2 ** 31) * 1000
}

function durationMs(text: string): number | undefined {
  const found = DURATION.exec(text)
  if (found === null) return undefined
  const [, hours = 0, minutes = 0, seconds = 0, ms = 0] = found
  return Math.ceil(Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000 + Number(ms))
}

/** The longest of several values; undefined if one of them is malformed. */
function longest(text: string | undefined, read: (value: string) => number | undefined): number | undefined {
  const times = trimmed(text)
    ?.match(ONE_TIME)
    ?.map((value) => read(value.trim()))
  return times?.every((ms) => ms !== undefined) ? Math.max(...(times as number[])) : undefined
}

/** A moment in the past is due now. */
function untilMs(momentMs: number | undefined, nowMs: number): number | undefined {
  return momentMs === undefined ? undefined : Math.max(0, Math.ceil(momentMs - nowMs))
}

function trimmed(text: string | undefined): string | undefined {
  const value = text === undefined || text.length > LONGEST ? undefined : text.trim()
  return value === '' ? undefined : value
}
