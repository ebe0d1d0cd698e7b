import { PolicyError } from './errors.js'

export type CalendarUnit = 'day' | 'week' | 'month' | 'year'

/** A window of the calendar: a day, week (from Monday), month or year of a time zone. */
export interface Calendar {
  readonly unit: CalendarUnit
  /** IANA name, for example `Europe/Rome`. */
  readonly timeZone: string
}

const DAY_MS = 86_400_000
const LONGEST_DAYS: Readonly<Record<CalendarUnit, number>> = { day: 1, week: 7, month: 31, year: 366 }

/** @throws {PolicyError} `OPTION_INVALID` when the time zone is not one. */
export function calendarOf(unit: CalendarUnit, timeZone = 'UTC'): Calendar {
  try {
    return Object.freeze({ unit, timeZone: new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone })
  } catch {
    throw new PolicyError('OPTION_INVALID', 'timeZone', timeZone, "must be the name of a time zone, such as 'Europe/Rome'")
  }
}

/** The nominal length of the longest such window. */
export function longestMs(unit: CalendarUnit): number {
  return LONGEST_DAYS[unit] * DAY_MS
}
