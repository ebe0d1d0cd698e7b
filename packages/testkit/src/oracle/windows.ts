import { floorDiv, toUs } from './emission.js'
import type { CalendarSpec, FixedWindowSpec } from './policy-spec.js'

/** From the first microsecond of a window to the first of the next one. */
export interface Window {
  readonly startUs: bigint
  readonly endUs: bigint
}

/** The window that a moment is in. Windows follow each other without gap or overlap. */
export type Windows = (us: bigint) => Window

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

export function windowsOf({ windowMs, calendar }: FixedWindowSpec): Windows {
  return calendar === undefined ? alignedWindows(toUs(windowMs)) : calendarWindows(calendar)
}

/** Windows of one length, counted from the Unix epoch. */
export function alignedWindows(windowUs: bigint): Windows {
  return (us) => {
    const startUs = floorDiv(us, windowUs) * windowUs
    return { startUs, endUs: startUs + windowUs }
  }
}

/**
 * Days, weeks from Monday, months or years of UTC, or of Rome from 1996 on: there the clocks are an hour ahead of UTC, from the last
 * Sunday of March to that of October two, and change at 01:00 UTC, so that every day has its midnight once.
 */
export function calendarWindows({ unit, timeZone }: CalendarSpec): Windows {
  const aheadMs = timeZone === 'UTC' ? () => 0 : romeAheadMs
  return (us) => {
    const ms = Number(floorDiv(us, 1000n))
    const [first, next] = firstDays(unit, new Date(ms + aheadMs(ms)))
    return { startUs: midnightUs(first, aheadMs), endUs: midnightUs(next, aheadMs) }
  }
}

/** The first day of the unit that a date is in, and of the next one, as if they were of UTC. */
function firstDays(unit: CalendarSpec['unit'], date: Date): readonly [number, number] {
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  const sinceMonday = (date.getUTCDay() + 6) % 7
  switch (unit) {
    case 'day':
      return [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)]
    case 'week':
      return [Date.UTC(year, month, day - sinceMonday), Date.UTC(year, month, day - sinceMonday + 7)]
    case 'month':
      return [Date.UTC(year, month), Date.UTC(year, month + 1)]
    case 'year':
      return [Date.UTC(year, 0), Date.UTC(year + 1, 0)]
  }
}

function midnightUs(localMs: number, aheadMs: (ms: number) => number): bigint {
  return BigInt(localMs - aheadMs(localMs - 2 * HOUR_MS)) * 1000n
}

function romeAheadMs(ms: number): number {
  const year = new Date(ms).getUTCFullYear()
  return ms >= lastSundayMs(year, 2) && ms < lastSundayMs(year, 9) ? 2 * HOUR_MS : HOUR_MS
}

/** 01:00 UTC on the last Sunday of a month of 31 days. */
function lastSundayMs(year: number, month: number): number {
  const lastMs = Date.UTC(year, month, 31)
  return lastMs - new Date(lastMs).getUTCDay() * DAY_MS + HOUR_MS
}
