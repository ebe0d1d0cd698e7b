import { PolicyError } from '../errors.js'
import { DAY_MS } from '../time/duration.js'

export type CalendarUnit = 'day' | 'week' | 'month' | 'year' | 'ever'

/** A window of the calendar: a day, week (from Monday), month or year of a time zone; or one that does not end, as of {@link credits}. */
export interface Calendar {
  readonly unit: CalendarUnit
  /** IANA name, for example `Europe/Rome`. */
  readonly timeZone: string
}

/** From the first microsecond of a window to the first of the next one, since the Unix epoch. */
export interface CalendarWindow {
  readonly startUs: number
  readonly endUs: number
}

const SECOND_MS = 1000
/** A window that nobody sees the end of: 255 years from the Unix epoch on, in whole minutes. */
const EVER_MS = 2 ** 27 * 60_000
/** What ends later than this does not end: blocks last 100 years at most. */
const NEVER_US = 101 * 366 * DAY_MS * 1000
const MINUTE_US = 60_000_000
/** No zone was ever further from UTC: Manila had -15:56:08 and Metlakatla 15:13:42 before their change of the date line. */
const FURTHEST_MS = 16 * 3_600_000
const LONGEST_DAYS: Readonly<Record<CalendarUnit, number>> = { day: 1, week: 7, month: 31, year: 366, ever: EVER_MS / DAY_MS }
/** In the order by which snapshots know them. */
export const CALENDAR_UNITS = Object.keys(LONGEST_DAYS) as readonly CalendarUnit[]
/** Making a formatter takes longer than finding a window with it. */
const formatters = new Map<string, Intl.DateTimeFormat>()

/** @throws {PolicyError} `WINDOW_INVALID` when the unit is not one, `OPTION_INVALID` when the time zone is not. */
export function calendarOf(unit: CalendarUnit, timeZone = 'UTC'): Calendar {
  if (!Object.hasOwn(LONGEST_DAYS, unit)) {
    throw new PolicyError('WINDOW_INVALID', 'window', unit, "must be 'day', 'week', 'month' or 'year'")
  }
  if (unit === 'ever') return EVER
  return Object.freeze({ unit, timeZone: formatterOf(timeZone).resolvedOptions().timeZone })
}

const EVER: Calendar = Object.freeze({ unit: 'ever', timeZone: 'UTC' })

/** A time until the end of a window: `Infinity` for one that does not end. */
export function untilUs(us: number): number {
  return us > NEVER_US ? Number.POSITIVE_INFINITY : us
}

/** The nominal length of the longest such window. */
export function longestMs(unit: CalendarUnit): number {
  return LONGEST_DAYS[unit] * DAY_MS
}

/**
 * The window of `calendar` that the moment `us` (whole microseconds since the Unix epoch) is in. Windows follow each other without
 * gap or overlap: each begins at the first moment whose local date is its first day or later. So a day lasts as long as its zone makes
 * it, begins at 01:00 where there is no midnight, has no window where the date was skipped, and does not begin again when
 * clocks are set back over midnight.
 */
export function calendarWindow({ unit, timeZone }: Calendar, us: number): CalendarWindow {
  if (unit === 'ever') return everWindow(us)
  // Whole seconds, as all offsets and bounds are.
  const ms = Math.floor(us / 1_000_000) * SECOND_MS
  let start = firstDayMs(unit, ms + offsetMs(timeZone, ms), 0)
  for (;;) {
    const next = firstDayMs(unit, start, 1)
    const endMs = firstMomentMs(timeZone, next)
    if (endMs > ms) return { startUs: firstMomentMs(timeZone, start) * 1000, endUs: endMs * 1000 }
    // Set back over midnight, the clocks here show the day before once more.
    start = next
  }
}

function everWindow(us: number): CalendarWindow {
  const startUs = Math.floor(us / (EVER_MS * 1000)) * EVER_MS * 1000
  return { startUs, endUs: startUs + EVER_MS * 1000 }
}

/** The same from whole minute to whole minute, as the core counts them: a few zones had offsets of seconds, the last until 1972. */
export function minuteWindow(calendar: Calendar, us: number): CalendarWindow {
  const window = calendarWindow(calendar, us)
  const { startUs, endUs } = us < wholeMinutes(window.endUs) ? window : calendarWindow(calendar, window.endUs)
  return { startUs: wholeMinutes(startUs), endUs: wholeMinutes(endUs) }
}

function wholeMinutes(us: number): number {
  return Math.floor(us / MINUTE_US) * MINUTE_US
}

/** Midnight of the first day of the unit that a local time is in, or of the `after`-th unit after it, as if local were UTC. */
function firstDayMs(unit: CalendarUnit, localMs: number, after: 0 | 1): number {
  const day = Math.floor(localMs / DAY_MS)
  // The Unix epoch began on a Thursday.
  if (unit === 'week') return (day - mod(day + 3, 7) + 7 * after) * DAY_MS
  if (unit === 'day') return (day + after) * DAY_MS
  const date = new Date(localMs)
  const year = date.getUTCFullYear()
  return unit === 'month' ? Date.UTC(year, date.getUTCMonth() + after) : Date.UTC(year + after, 0)
}

/** The first moment whose local time is `localMs` or later. */
function firstMomentMs(timeZone: string, localMs: number): number {
  let fromMs = localMs - FURTHEST_MS
  const toMs = localMs + FURTHEST_MS
  const lastOffset = offsetMs(timeZone, toMs)
  for (;;) {
    const offset = offsetMs(timeZone, fromMs)
    // Looked for in each stretch of one offset, the earliest first. Clocks that spring over `localMs` reach it with the spring.
    const changeMs = offset === lastOffset ? Number.POSITIVE_INFINITY : firstChangeMs(timeZone, fromMs, toMs, offset)
    const momentMs = Math.max(fromMs, localMs - offset)
    if (momentMs < changeMs) return momentMs
    fromMs = changeMs
  }
}

/** The moment between two at which a zone leaves its offset, to the second. No zone ever changed twice within six days. */
function firstChangeMs(timeZone: string, beforeMs: number, afterMs: number, offset: number): number {
  let before = beforeMs / SECOND_MS
  let after = afterMs / SECOND_MS
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (offsetMs(timeZone, middle * SECOND_MS) === offset) before = middle
    else after = middle
  }
  return after * SECOND_MS
}

/** Local time minus UTC, at a whole second. */
function offsetMs(timeZone: string, ms: number): number {
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = formatterOf(timeZone).format(ms).split(/\D+/).map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second) - ms
}

/** @throws {PolicyError} `OPTION_INVALID` */
function formatterOf(timeZone: string): Intl.DateTimeFormat {
  const known = formatters.get(timeZone)
  if (known !== undefined) return known
  const formatter = newFormatter(timeZone)
  // Under its own name alone: there is no end of other spellings.
  formatters.set(formatter.resolvedOptions().timeZone, formatter)
  return formatter
}

function newFormatter(timeZone: string): Intl.DateTimeFormat {
  try {
    if (typeof timeZone !== 'string') throw new RangeError()
    const numeric = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const
    return new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', calendar: 'gregory', numberingSystem: 'latn', ...numeric })
  } catch {
    throw new PolicyError('OPTION_INVALID', 'timeZone', timeZone, "must be the name of a time zone, such as 'Europe/Rome'")
  }
}

function mod(n: number, by: number): number {
  return ((n % by) + by) % by
}
