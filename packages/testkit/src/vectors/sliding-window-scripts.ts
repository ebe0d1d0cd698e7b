import { blocked, impossibleCost, thirtyYears } from './common-scripts.js'
import { at, DAWN, DAY, HOUR, MINUTE, NOW, SECOND, script } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

function per(limit: number, windowUs: number): VectorPolicy {
  return { limit, windowUs }
}

export const SLIDING_WINDOW_SCRIPTS: readonly Vector[] = [
  script('the window before weighs as much of its count as the sliding window still covers, rounded up', per(10, MINUTE), [
    at(DAWN + 59 * SECOND, { times: 11, take: 1 }),
    at(DAWN + MINUTE, { take: 1 }),
    at(DAWN + MINUTE + 6 * SECOND - 1, { take: 1 }),
    at(DAWN + MINUTE + 6 * SECOND, { take: 1 }, { take: 1 }),
    at(DAWN + MINUTE + 30 * SECOND, { take: 5 }, { take: 4 }),
    at(DAWN + 2 * MINUTE, { peek: 10 }),
    at(DAWN + 3 * MINUTE - 1, { peek: 10 }),
    at(DAWN + 3 * MINUTE, { peek: 10 }),
  ]),
  script('at most one fewer than twice the limit in any position', per(10, SECOND), [
    at(DAWN + SECOND - 1, { times: 20, take: 1 }),
    at(DAWN + SECOND, { everyUs: 999, times: 1001, take: 1 }),
    at(DAWN + 2 * SECOND - 1, { times: 20, take: 1 }),
  ]),
  impossibleCost(per(10, SECOND)),
  script('the clock steps back: closed until the window of the key begins', per(10, MINUTE), [
    at(DAWN, { take: 10 }),
    at(DAWN + 2 * MINUTE - 1, { take: 1 }),
    at(DAWN + MINUTE - 1, { take: 1 }),
    at(DAWN, { take: 10 }, { refund: 1 }, { take: 1 }),
    at(DAWN - HOUR, { peek: 1 }),
    at(DAWN + MINUTE, { take: 1 }),
  ]),
  script('a penalty goes down to ten limits below empty and fades over the next window', per(10, SECOND), [
    at(DAWN, { penalize: 1_000_000_000 }),
    at(DAWN + SECOND, { take: 1 }, { take: 10 }),
    at(DAWN + 2 * SECOND - 90_909, { take: 1 }),
    at(DAWN + 2 * SECOND - 90_000, { take: 1 }, { refund: 5 }),
    at(DAWN + 3 * SECOND, { refund: 5 }, { reset: true }),
  ]),
  script('counters of 16 bits stop at 65,535', per(60_000, SECOND), [
    at(DAWN, { take: 60_000 }, { penalize: 100_000 }, { penalize: 1 }, { take: 1 }),
    at(DAWN + SECOND, { take: 1 }, { refund: 1 }, { penalize: 65_534 }),
    at(DAWN + 2 * SECOND, { peek: 60_000 }),
  ]),
  blocked('a block is apart from the counts; the longest wins, 0 lifts it', per(10, SECOND), DAWN),
  script('a change of the limit keeps the counts, one of the window keeps what was used', per(100, MINUTE), [
    at(DAWN, { take: 100 }),
    at(DAWN + MINUTE + 15 * SECOND, { take: 20 }, { update: per(50, MINUTE) }, { peek: 1 }),
    at(DAWN + MINUTE + 45 * SECOND, { update: per(50, HOUR) }, { peek: 1 }),
    at(DAWN + HOUR, { update: per(10, SECOND) }, { peek: 1 }),
    at(DAWN + HOUR + 2 * SECOND, { take: 10 }),
  ]),
  script('bookings are made at the earliest time at which they conform', per(10, SECOND), [
    at(DAWN, { reserve: 6 }, { reserve: 6 }, { take: 1 }, { reserve: 3 }, { reserve: 10 }, { reserve: 11 }, { cancel: 3 }, { cancel: 1 }),
    at(DAWN + SECOND, { take: 1 }),
    at(DAWN + 2 * SECOND, { take: 1 }, { settle: 2, actual: 9 }, { take: 2 }),
  ]),
  script('1,000,000,000 per 366 days: wide counters', per(1_000_000_000, 366 * DAY), [
    at(NOW, { take: 1_000_000_000 }, { take: 1 }, { penalize: 20_000_000_000 }),
    at(NOW + 366 * DAY, { take: 1 }, { update: per(1_000_000_000, DAY) }),
    at(NOW + 367 * DAY, { take: 1 }),
  ]),
  script('1 per millisecond: the shortest window', per(1, 1000), [
    at(DAWN, { take: 1 }),
    at(DAWN + 1000, { take: 1 }),
    at(DAWN + 1999, { take: 1 }),
    at(DAWN + 2000, { take: 1 }),
    at(DAWN + 3000, { everyUs: 250, times: 4000, take: 1 }),
  ]),
  thirtyYears(per(1000, SECOND), 2_000_000),
]
