import { blocked, thirtyYears } from './common-scripts.js'
import { at, DAY, HOUR, MINUTE, NOW, SECOND, script } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

function per(limit: number, windowUs: number, slotBytes: 4 | 8 = 8): VectorPolicy {
  return { limit, windowUs, slotBytes }
}

export const SLIDING_LOG_SCRIPTS: readonly Vector[] = [
  script('each request counts until a window after it, and all of the limit fit', per(3, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 100_000, { take: 1 }),
    at(NOW + 200_000, { take: 1 }, { take: 1 }),
    at(NOW + SECOND - 1, { take: 1 }),
    at(NOW + SECOND, { take: 1 }, { take: 1 }, { peek: 3 }),
    at(NOW + 2 * SECOND, { peek: 3 }),
  ]),
  script('costs above one; an impossible cost charges nothing', per(10, SECOND), [
    at(NOW, { take: 11 }, { take: 4 }),
    at(NOW + 1, { take: 6 }),
    at(NOW + 2, { take: 4 }, { take: 5 }),
    at(NOW + SECOND, { take: 5 }, { take: 4 }),
  ]),
  script('slots of four bytes hold a token each', per(5, SECOND, 4), [
    at(NOW, { take: 2 }),
    at(NOW + 100_000, { times: 4, take: 1 }, { penalize: 3 }),
    at(NOW + SECOND, { peek: 1 }),
    at(NOW + SECOND + 100_000, { peek: 5 }),
    at(NOW + 2 * SECOND, { penalize: 1_000_000 }, { refund: 2 }, { take: 3 }, { take: 2 }),
  ]),
  script('the clock steps back: closed until the newest', per(3, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW - 1, { take: 1 }),
    at(NOW - HOUR, { take: 3 }, { penalize: 1 }),
    at(NOW, { take: 1 }, { take: 1 }),
  ]),
  script('a penalty goes down to ten limits below empty, a refund takes the newest first', per(10, SECOND), [
    at(NOW, { take: 4 }),
    at(NOW + 1000, { take: 4 }),
    at(NOW + 2000, { refund: 5 }, { take: 8 }, { penalize: 1_000_000_000 }),
    at(NOW + SECOND, { peek: 1 }),
    at(NOW + SECOND + 2000, { peek: 10 }, { penalize: 3 }, { reset: true }),
  ]),
  script('where there is no slot for a penalty the newest gains it', per(2, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 1000, { take: 1 }),
    at(NOW + 2000, { penalize: 3 }),
    at(NOW + SECOND, { peek: 1 }),
    at(NOW + SECOND + 1000, { peek: 1 }),
    at(NOW + SECOND + 2000, { peek: 1 }),
  ]),
  blocked('a block is apart from the log; the longest wins, 0 lifts it', per(10, SECOND), NOW),
  script('a change of policy keeps what still counted', per(10, SECOND), [
    at(NOW, { take: 6 }),
    at(NOW + 500_000, { take: 4 }, { update: per(5, SECOND) }, { take: 1 }),
    at(NOW + SECOND, { take: 1 }, { update: per(20, MINUTE) }, { take: 16 }),
    at(NOW + MINUTE + 500_000, { take: 4 }),
  ]),
  script('bookings are made at the earliest time at which they conform', per(3, SECOND), [
    at(NOW, { take: 1 }),
    at(NOW + 100_000, { take: 2 }),
    at(NOW + 200_000, { reserve: 2 }, { reserve: 1 }, { reserve: 4 }, { take: 1 }, { cancel: 0 }, { cancel: 1 }, { take: 1 }),
    at(NOW + 1_100_000, { take: 1 }, { reserve: 1 }, { settle: 3, actual: 3 }),
  ]),
  script('one slot: what was booked ahead and given back leaves what was there', per(1, SECOND), [
    at(NOW, { take: 1 }, { reserve: 1 }, { reserve: 1 }, { cancel: 1 }, { cancel: 0 }, { take: 1 }),
    at(NOW + SECOND, { take: 1 }),
  ]),
  script('times of a day in slots of four bytes are rounded up to 128 microseconds', per(2, DAY, 4), [
    at(NOW, { take: 1 }, { take: 1 }),
    at(NOW + DAY, { take: 1 }),
    at(NOW + DAY + 127, { take: 1 }, { take: 1 }),
  ]),
  script('100,000 per 366 days', per(100_000, 366 * DAY), [
    at(NOW, { take: 99_999 }),
    at(NOW + 1_000_000, { take: 1 }),
    at(NOW + 366 * DAY, { take: 1 }),
    at(NOW + 366 * DAY + SECOND, { take: 100_000 }),
  ]),
  thirtyYears(per(1000, SECOND), 1_000_000),
]
