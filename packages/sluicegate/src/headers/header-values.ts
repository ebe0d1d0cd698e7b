const LONGEST = 256
const LONGEST_COUNTS = 1_024
/** A value between commas; a date has a comma after the day of the week. */
const ONE_TIME = /\s*[A-Za-z]{3,9},[^,]*|[^,]+/g
const NUMBER = /^\d{1,19}(?:\.\d{1,9})?$/
const AGE = /^[ \t]*(\d+)[ \t]*(?:,|$)/
const COUNT = /^(\d{1,15})(?:\.\d{1,9})?(?=$|[,;])/
/** As Go writes durations. A header's bytes are read as Latin-1 or as UTF-8: the micro sign, or the letter mu, has four forms. */
const DURATION =
  /^(?:(\d{1,6}(?:\.\d{1,9})?)d)?(?:(\d{1,6}(?:\.\d{1,9})?)h)?(?:(\d{1,6}(?:\.\d{1,9})?)m(?!s))?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?(?:(\d{1,9}(?:\.\d{1,9})?)(?:u|µ|μ|Âµ|Î¼)s)?(?:(\d{1,9})ns)?$/
const DURATION_UNITS_MS = [86_400_000, 3_600_000, 60_000, 1_000, 1, 1e-3, 1e-6]

/** Numbers from here on are moments, below it durations: as seconds this is the year 2001, and no quota lasts thirty years. */
const LEAST_EPOCH_S = 1e9
/** From here on milliseconds: the year 1973, which as seconds would be 5138. */
const LEAST_EPOCH_MS = 1e11
/** The same between milliseconds and microseconds. */
const LEAST_EPOCH_US = 1e14
/** And nanoseconds. */
const LEAST_EPOCH_NS = 1e17

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
 * `Retry-After`, or a reset, in milliseconds from now; of several values, such as those of two joined lines, the longest. Servers write
 * seconds, with an optional fraction, a moment in Unix time, which is recognised by its size, a date, or a duration such as `6m0s`.
 *
 * Source: RFC 9110, section 10.2.3, for seconds and dates.
 *
 * @param nowMs Unix time on the server's clock.
 */
export function readWaitMs(text: string | undefined, nowMs: number): number | undefined {
  return longest(text, (value) => singleWaitMs(value, nowMs))
}

function singleWaitMs(value: string, nowMs: number): number | undefined {
  if (NUMBER.test(value)) {
    const number = Number(value)
    if (number < LEAST_EPOCH_S) return Math.ceil(number * 1000)
    const unitMs = number < LEAST_EPOCH_MS ? 1_000 : number < LEAST_EPOCH_US ? 1 : number < LEAST_EPOCH_NS ? 1e-3 : 1e-6
    return untilMs(number * unitMs, nowMs)
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
  const ms = DURATION_UNITS_MS.reduce((sum, unitMs, i) => sum + Number(found[i + 1] ?? 0) * unitMs, 0)
  // Products of fractions may be a little above the whole number.
  return Math.ceil(Math.round(ms * 1e6) / 1e6)
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

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const LONGEST_DATE = 40

// Each pattern has a fixed order of bounded parts: no backtracking.
const IMF = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/
const RFC_850 = /^[A-Z][a-z]{5,8}, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/
const ASCTIME = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/
const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?(?:[Zz]|([+-]\d{2}):(\d{2}))$/
const ECMASCRIPT = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT([+-]\d{2})(\d{2})(?: \([^()]{1,60}\))?$/

/**
 * Unix time in milliseconds of an HTTP date, in any of its three forms; undefined for other text.
 *
 * Source: RFC 9110, section 5.6.7.
 *
 * @param nowMs determines the century of a year with two digits.
 */
export function httpDateMs(text: string, nowMs: number): number | undefined {
  if (text.length > LONGEST_DATE) return undefined
  const imf = IMF.exec(text)
  if (imf !== null) return momentMs(imf[3], imf[2], imf[1], imf.slice(4))
  const rfc850 = RFC_850.exec(text)
  if (rfc850 !== null) return momentMs(String(fullYear(Number(rfc850[3]), nowMs)), rfc850[2], rfc850[1], rfc850.slice(4))
  const asctime = ASCTIME.exec(text)
  return asctime === null ? undefined : momentMs(asctime[6], asctime[1], asctime[2], asctime.slice(3, 6))
}

/**
 * Unix time in milliseconds, fractions of a second included, of a date as RFC 3339 or `String(new Date())` writes it.
 *
 * Source: RFC 3339, section 5.6; ECMA-262, Date.prototype.toString.
 */
function offsetDateMs(text: string): number | undefined {
  const iso = RFC_3339.exec(text)
  if (iso !== null) {
    const ms = momentMs(iso[1], MONTHS[Number(iso[2]) - 1], iso[3], iso.slice(4, 7))
    return inUtc(ms, iso[8], iso[9], Number(iso[7] ?? 0) * 1000)
  }
  const own = ECMASCRIPT.exec(text)
  return own === null ? undefined : inUtc(momentMs(own[3], own[1], own[2], own.slice(4, 7)), own[7], own[8])
}

function inUtc(localMs: number | undefined, hours = '+00', minutes = '00', fractionMs = 0): number | undefined {
  if (localMs === undefined || Math.abs(Number(hours)) > 23 || Number(minutes) > 59) return undefined
  const offset = Number(`${hours[0]}1`) * (Math.abs(Number(hours)) * 60 + Number(minutes))
  return localMs + fractionMs - offset * 60_000
}

function momentMs(year = '', month = '', day = '', time: readonly string[] = []): number | undefined {
  const [hours, minutes, seconds] = time.map(Number) as [number, number, number]
  const monthIndex = MONTHS.indexOf(month)
  // A leap second becomes the last second of the day.
  if (monthIndex < 0 || hours > 23 || minutes > 59 || seconds > 60) return undefined
  const ms = Date.UTC(Number(year), monthIndex, Number(day), hours, minutes, Math.min(seconds, 59))
  return new Date(ms).getUTCDate() === Number(day) && Number(year) >= 100 ? ms : undefined
}

/** The nearest century, at most fifty years ahead. Source: RFC 9110, section 5.6.7. */
function fullYear(twoDigits: number, nowMs: number): number {
  const now = new Date(nowMs).getUTCFullYear()
  const year = now - (now % 100) + twoDigits
  return year > now + 50 ? year - 100 : year
}
