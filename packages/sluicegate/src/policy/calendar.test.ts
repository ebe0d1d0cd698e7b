import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, Random, shortOrLong } from 'sluicegate-testkit'
import { type CalendarUnit, calendarOf, calendarWindow, minuteWindow } from './calendar.js'

const HOUR_US = 3_600_000_000
const UNITS: readonly CalendarUnit[] = ['day', 'week', 'month', 'year']
/** Zones and years in which something odd happened. */
const ODD_YEARS: readonly (readonly [string, number])[] = [
  ['America/Sao_Paulo', 2018], // no midnight
  ['Africa/Cairo', 2024],
  ['Asia/Beirut', 2022],
  ['America/Asuncion', 2010],
  ['America/Havana', 2012],
  ['America/St_Johns', 2006], // set back at 00:01
  ['Australia/Lord_Howe', 2026], // half an hour
  ['Antarctica/Troll', 2025], // two hours
  ['Pacific/Apia', 2011], // no 30 December
  ['Pacific/Kwajalein', 1993], // no 21 August
  ['Asia/Manila', 1844], // no 31 December
  ['America/Juneau', 1867], // 18 October twice
  ['Africa/Monrovia', 1972], // 44 minutes and 30 seconds
  ['Africa/Casablanca', 2025], // summer time but for Ramadan
  ['Europe/London', 1941], // double summer time
  ['Asia/Kathmandu', 1986],
  ['Asia/Pyongyang', 2018],
  ['Pacific/Chatham', 2026],
  ['Asia/Kolkata', 1969],
  ['UTC', 2100],
]

function us(iso: string): number {
  return Date.parse(iso) * 1000
}

/** The window of a moment, as ISO texts without seconds where there are none. */
function windowAt(unit: CalendarUnit, timeZone: string, at: string): readonly string[] {
  const { startUs, endUs } = calendarWindow(calendarOf(unit, timeZone), us(at))
  return [startUs, endUs].map((bound) => new Date(bound / 1000).toISOString().replace(/(:00)?\.000Z$/, 'Z'))
}

/** The first day of the unit that the clocks on the wall showed, as a text that sorts as time does. */
function shownBy(unit: CalendarUnit, timeZone: string): (us: number) => string {
  const wall = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  return (us) => {
    const date = wall.format(Math.floor(us / 1000))
    if (unit === 'month') return date.slice(0, 7)
    if (unit === 'year') return date.slice(0, 4)
    if (unit === 'day') return date
    const monday = new Date(`${date}T00:00Z`)
    while (monday.getUTCDay() !== 1) monday.setUTCDate(monday.getUTCDate() - 1)
    return monday.toISOString().slice(0, 10)
  }
}

/** Steps through a year of windows and the moments in them: each begins with the first moment that shows something later than ever before. */
function walkThrough(unit: CalendarUnit, timeZone: string, year: number): void {
  const calendar = calendarOf(unit, timeZone)
  const shown = shownBy(unit, timeZone)
  const untilUs = us(`${year + 1}-01-03T00:00Z`)
  let { startUs, endUs } = calendarWindow(calendar, us(`${year}-01-01T00:00Z`))
  let latest = shown(startUs)
  while (startUs < untilUs) {
    const label = `${unit} ${timeZone} ${new Date(startUs / 1000).toISOString()}`
    const isOrdinary = unit === 'day' && endUs - startUs === 24 * HOUR_US
    const stepUs = unit === 'day' ? (isOrdinary ? 6 * HOUR_US : HOUR_US / 4) : (endUs - startUs) / 5
    for (let at = startUs; at < endUs; at = Math.floor(at + stepUs)) {
      assert.ok(shown(at) <= latest, `${label}: shows ${shown(at)} at ${new Date(at / 1000).toISOString()}`)
      assert.deepEqual(calendarWindow(calendar, at), { startUs, endUs }, label)
    }
    assert.deepEqual(calendarWindow(calendar, endUs - 1), { startUs, endUs }, label)
    assert.ok(shown(endUs - 1) <= latest && shown(endUs) > latest, `${label}: ends too late or too early`)
    latest = shown(endUs)
    const next = calendarWindow(calendar, endUs)
    assert.equal(next.startUs, endUs, label)
    ;({ startUs, endUs } = next)
  }
}

// A short run has a third of them: those that differ in kind are among the days below.
for (const [i, [timeZone, year]] of ODD_YEARS.entries()) {
  everyNth(i, 3)(`windows tile ${year} in ${timeZone} as clocks on the wall do`, () => {
    for (const unit of UNITS) walkThrough(unit, timeZone, year)
  })
}

test('windows tile a random year in each of several random zones as clocks on the wall do', () => {
  const random = new Random(20_260_921)
  const zones = Intl.supportedValuesOf('timeZone')
  for (let i = 0; i < shortOrLong(5, 20); i++)
    walkThrough(random.pick(['day', 'day', 'week', 'month']), random.pick(zones), random.integer(1880, 2100))
})

test('a day is 23 or 25 hours long when the clocks change, and half an hour longer on Lord Howe', () => {
  assert.deepEqual(windowAt('day', 'Europe/Rome', '2026-03-29T12:00Z'), ['2026-03-28T23:00Z', '2026-03-29T22:00Z'])
  assert.deepEqual(windowAt('day', 'Europe/Rome', '2026-10-25T12:00Z'), ['2026-10-24T22:00Z', '2026-10-25T23:00Z'])
  assert.deepEqual(windowAt('day', 'Australia/Lord_Howe', '2026-04-05T00:00Z'), ['2026-04-04T13:00Z', '2026-04-05T13:30Z'])
})

test('a day without midnight begins at its first moment, 01:00', () => {
  assert.deepEqual(windowAt('day', 'America/Sao_Paulo', '2018-11-04T12:00Z'), ['2018-11-04T03:00Z', '2018-11-05T02:00Z'])
  assert.deepEqual(windowAt('day', 'Africa/Cairo', '2024-04-26T12:00Z'), ['2024-04-25T22:00Z', '2024-04-26T21:00Z'])
  assert.deepEqual(windowAt('day', 'Asia/Beirut', '2022-03-27T12:00Z'), ['2022-03-26T22:00Z', '2022-03-27T21:00Z'])
})

test('a date that was skipped has no window', () => {
  assert.deepEqual(windowAt('day', 'Pacific/Apia', '2011-12-30T09:59:59Z'), ['2011-12-29T10:00Z', '2011-12-30T10:00Z'])
  assert.deepEqual(windowAt('day', 'Pacific/Apia', '2011-12-30T10:00Z'), ['2011-12-30T10:00Z', '2011-12-31T10:00Z'])
})

test('clocks set back over midnight do not begin the day anew', () => {
  // At 00:01 on the 29th they showed 23:01 on the 28th.
  const the29th = ['2006-10-29T02:30Z', '2006-10-30T03:30Z']
  for (const at of ['02:30', '02:31', '03:29', '03:30']) {
    assert.deepEqual(windowAt('day', 'America/St_Johns', `2006-10-29T${at}Z`), the29th)
  }
  assert.equal(windowAt('day', 'America/St_Johns', '2006-10-29T02:29:59.999Z')[1], the29th[0])
})

test('offsets of minutes and seconds count', () => {
  assert.deepEqual(windowAt('day', 'Asia/Kolkata', '2026-01-01T00:00Z'), ['2025-12-31T18:30Z', '2026-01-01T18:30Z'])
  assert.deepEqual(windowAt('day', 'Africa/Monrovia', '1971-06-01T12:00Z'), ['1971-06-01T00:44:30Z', '1971-06-02T00:44:30Z'])
})

test('weeks begin on Monday, months and years on their first day', () => {
  assert.deepEqual(windowAt('week', 'UTC', '2026-11-22T23:59:59.999Z'), ['2026-11-16T00:00Z', '2026-11-23T00:00Z'])
  assert.deepEqual(windowAt('month', 'Europe/Rome', '2026-03-31T21:59Z'), ['2026-02-28T23:00Z', '2026-03-31T22:00Z'])
  assert.deepEqual(windowAt('month', 'UTC', '2100-02-10T00:00Z'), ['2100-02-01T00:00Z', '2100-03-01T00:00Z'])
  assert.deepEqual(windowAt('year', 'America/New_York', '2026-01-01T04:59Z'), ['2025-01-01T05:00Z', '2026-01-01T05:00Z'])
})

test('before 1970 the last microsecond of a window is in it and the next is not', () => {
  const calendar = calendarOf('day', 'UTC')
  assert.deepEqual(calendarWindow(calendar, -1), { startUs: -24 * HOUR_US, endUs: 0 })
  assert.deepEqual(calendarWindow(calendar, 0), { startUs: 0, endUs: 24 * HOUR_US })
  assert.deepEqual(windowAt('week', 'UTC', '1969-12-31T23:59:59.999Z'), ['1969-12-29T00:00Z', '1970-01-05T00:00Z'])
})

test('as the core counts them, windows go from whole minute to whole minute, each into the next', () => {
  // Monrovia was 44 minutes and 30 seconds behind until 1972.
  const calendar = calendarOf('day', 'Africa/Monrovia')
  const noonUs = Date.parse('1970-01-05T12:00Z') * 1000
  const before = minuteWindow(calendar, noonUs)
  assert.equal(new Date(before.endUs / 1000).toISOString(), '1970-01-06T00:44:00.000Z')
  for (const us of [before.endUs, before.endUs + 29_000_000, before.endUs + 30_000_000]) {
    assert.equal(minuteWindow(calendar, us).startUs, before.endUs)
  }
  assert.deepEqual(minuteWindow(calendar, before.endUs - 1), before)
})

test('every reading that a clock may give has its window', () => {
  for (const atUs of [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]) {
    const { startUs, endUs } = calendarWindow(calendarOf('year', 'Asia/Tokyo'), atUs)
    assert.ok(startUs <= atUs && atUs < endUs)
  }
})

test('a unit that is not one is refused, and so is a time zone', () => {
  for (const unit of ['hour', '', 'constructor', undefined]) {
    assert.throws(() => calendarOf(unit as CalendarUnit), { name: 'PolicyError', code: 'WINDOW_INVALID', option: 'window' })
  }
  for (const timeZone of ['Mars/Olympus', '', null, 5, {}]) {
    assert.throws(() => calendarOf('day', timeZone as string), { name: 'PolicyError', code: 'OPTION_INVALID', option: 'timeZone' })
  }
})

test('a time zone is known by any spelling of its name, and is UTC when none is given', () => {
  assert.deepEqual(calendarOf('day', 'europe/rome'), { unit: 'day', timeZone: 'Europe/Rome' })
  assert.deepEqual(calendarOf('day'), { unit: 'day', timeZone: 'UTC' })
})
