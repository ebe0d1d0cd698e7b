import { impossibleCost, thirtyYears } from './common-scripts.js'
import { at, DAWN, DAY, HOUR, MINUTE, NOW, SECOND, script } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

function per(limit: number, windowUs: number): VectorPolicy {
  return { limit, windowUs }
}

/** The last Sunday of October 2026, when the day in Rome has 25 hours: it begins at 22:00 UTC on Saturday. */
const LONG_DAY = Date.UTC(2026, 9, 24, 22) * 1000

export const FIXED_WINDOW_SCRIPTS: readonly Vector[] = [
  script('windows are those of UTC, whenever a key comes first', per(3, MINUTE), [
    at(DAWN + 59 * SECOND, { times: 4, take: 1 }),
    at(DAWN + MINUTE - 1, { take: 1 }),
    at(DAWN + MINUTE, { times: 4, take: 1 }),
    at(DAWN + MINUTE + 1, { peek: 3 }),
    at(DAWN + 2 * MINUTE, { peek: 3 }),
  ]),
  impossibleCost(per(10, SECOND)),
  script('retry-after is rounded up to the end of the window', per(1, 900_000), [
    at(DAWN + 100_000, { take: 1 }, { take: 1 }),
    at(DAWN + 100_001, { take: 1 }),
    at(DAWN + 899_999, { take: 1 }),
    at(DAWN + 900_000, { take: 1 }),
  ]),
  script('the clock steps back: closed until the window of the key begins', per(3, MINUTE), [
    at(DAWN + MINUTE, { take: 1 }),
    at(DAWN + MINUTE - 1, { take: 1 }, { take: 3 }),
    at(DAWN, { refund: 1 }, { take: 1 }),
    at(DAWN + MINUTE, { take: 3 }),
  ]),
  script('a penalty goes down to ten limits below empty and ends with the window; a refund is of this window', per(10, SECOND), [
    at(DAWN, { penalize: 5 }, { penalize: 1_000_000_000 }, { refund: 99 }, { refund: 10 }, { refund: 1_000_000_000 }, { take: 10 }),
    at(DAWN + SECOND, { refund: 5 }, { take: 10 }, { reset: true }),
  ]),
  script('a block is apart from the count; the longest wins, 0 lifts it', per(10, SECOND), [
    at(DAWN, { take: 10 }, { blockUs: 50_000 }, { blockUs: 5 * SECOND }),
    at(DAWN + 2 * SECOND, { take: 1 }, { reserve: 1 }),
    at(DAWN + 5 * SECOND - 1, { take: 1 }),
    at(DAWN + 5 * SECOND, { take: 1 }, { blockUs: DAY }, { blockUs: 0 }),
  ]),
  script('a change of the limit keeps the window, one of the window keeps what was spent', per(100, MINUTE), [
    at(DAWN, { take: 60 }, { update: per(50, MINUTE) }, { take: 1 }, { update: per(70, HOUR) }, { take: 20 }),
    at(DAWN + MINUTE, { take: 1 }),
    at(DAWN + HOUR, { update: per(10, SECOND) }, { take: 10 }),
  ]),
  script('bookings go to later windows, and what is skipped of one is not used', per(10, SECOND), [
    at(
      DAWN,
      { reserve: 6 },
      { reserve: 6 },
      { take: 1 },
      { reserve: 3 },
      { reserve: 2 },
      { reserve: 11 },
      { cancel: 1 },
      { cancel: 3 },
      { take: 1 },
    ),
    at(DAWN + SECOND, { take: 1 }),
    at(DAWN + 2 * SECOND, { settle: 2, actual: 5 }, { take: 8 }),
  ]),
  script('a month of UTC', { limit: 1000, windowUs: 31 * DAY, calendar: { unit: 'month', timeZone: 'UTC' } }, [
    at(NOW, { take: 1000 }, { take: 1 }),
    at(Date.UTC(2026, 9) * 1000 - 1, { take: 1 }),
    at(Date.UTC(2026, 9) * 1000, { take: 1 }, { reserve: 1000 }),
    at(Date.UTC(2026, 10) * 1000, { peek: 1 }),
  ]),
  script('a day of 25 hours in Rome', { limit: 2, windowUs: DAY, calendar: { unit: 'day', timeZone: 'Europe/Rome' } }, [
    at(LONG_DAY - 1, { times: 3, take: 1 }),
    at(LONG_DAY, { times: 3, take: 1 }),
    at(LONG_DAY + 25 * HOUR - 1, { take: 1 }),
    at(LONG_DAY + 25 * HOUR, { take: 1 }),
  ]),
  script('weeks from Monday and years', { limit: 1, windowUs: 7 * DAY, calendar: { unit: 'week', timeZone: 'Europe/Rome' } }, [
    at(
      NOW,
      { take: 1 },
      { take: 1 },
      { update: { limit: 1, windowUs: 366 * DAY, calendar: { unit: 'year', timeZone: 'UTC' } } },
      { take: 1 },
    ),
    at(Date.UTC(2027, 0) * 1000, { take: 1 }),
  ]),
  script('1,000,000,000 per 366 days, and 1 per millisecond', per(1_000_000_000, 366 * DAY), [
    at(NOW, { take: 1_000_000_000 }, { take: 1 }, { penalize: 20_000_000_000 }, { update: per(1, 1000) }, { take: 1 }),
    at(NOW + 1000, { everyUs: 250, times: 4000, take: 1 }),
  ]),
  thirtyYears(per(1000, SECOND), 1_000_000),
]
