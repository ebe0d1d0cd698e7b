import { at, DAY, HOUR, MINUTE, NOW, SECOND, script, YEAR } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

function per(limit: number, windowUs: number, burst = limit): VectorPolicy {
  return { limit, windowUs, burst }
}

/** What the golden vectors ask, without the answers: those come from the oracle. The same for both algorithms. */
export const RATE_SCRIPTS: readonly Vector[] = [
  script('a burst at once, then one token each emission interval', per(10, SECOND), [
    at(NOW, { times: 10, take: 1 }, { take: 1 }),
    at(NOW + 99_999, { take: 1 }),
    at(NOW + 100_000, { take: 1 }, { peek: 1 }),
    at(NOW + SECOND, { peek: 10 }),
    at(NOW + SECOND + 100_000, { peek: 10 }),
  ]),
  script('a burst of one spaces requests evenly', per(100, SECOND, 1), [
    at(NOW, { take: 1 }),
    at(NOW + 9_999, { take: 1 }),
    at(NOW + 10_000, { take: 1 }),
    at(NOW + 20_000, { everyUs: 10_000, times: 1000, take: 1 }),
  ]),
  script('costs above one; a cost above the burst can never pass and charges nothing', per(5, SECOND, 20), [
    at(NOW, { take: 21 }, { take: 13 }, { take: 8 }, { take: 7 }, { peek: 20 }),
    at(NOW + 3_999_999, { take: 20 }),
    at(NOW + 4_000_000, { take: 20 }, { peek: 21 }),
  ]),
  script('waits are rounded up to milliseconds, tokens down to whole ones', per(3, 10_000), [
    at(NOW, { take: 3 }),
    at(NOW + 1, { peek: 1 }),
    at(NOW + 3_333, { peek: 1 }),
    at(NOW + 3_334, { peek: 1 }),
    at(NOW + 6_666, { peek: 2 }),
    at(NOW + 6_667, { peek: 2 }),
    at(NOW + 9_999, { peek: 3 }),
    at(NOW + 10_000, { peek: 3 }),
  ]),
  script('polled every microsecond, the bucket still refills', per(1000, SECOND, 3), [
    at(NOW, { take: 3 }),
    at(NOW + 1, { everyUs: 1, times: 10_000, take: 1 }),
    at(NOW + 10_001, { peek: 1 }),
  ]),
  script('7 per 60 s does not drift', per(7, MINUTE), [
    at(NOW, { take: 7 }),
    at(NOW + MINUTE, { everyUs: MINUTE, times: 10_000, take: 7 }),
    at(NOW + 10_000 * MINUTE + 8_571_428, { take: 1 }),
    at(NOW + 10_000 * MINUTE + 8_571_429, { take: 1 }),
    at(NOW + 10_000 * MINUTE + 17_142_857, { take: 1 }),
    at(NOW + 10_000 * MINUTE + 17_142_858, { take: 1 }),
  ]),
  script('the clock steps back: nothing is granted, no wait is longer than the step', per(10, SECOND), [
    at(NOW, { take: 10 }),
    at(NOW - SECOND, { take: 1 }, { peek: 10 }),
    at(NOW - 1, { take: 1 }),
    at(NOW + 100_000, { take: 1 }),
    at(NOW - HOUR, { peek: 1 }),
    at(NOW + 200_000, { take: 1 }),
  ]),
  script('debt: a penalty goes down to ten bursts below empty, a refund up to full', per(10, SECOND), [
    at(NOW, { penalize: 15 }, { take: 1 }, { penalize: 1_000_000_000 }),
    at(NOW + SECOND, { peek: 1 }),
    at(NOW + 10 * SECOND + 99_999, { take: 1 }),
    at(NOW + 10 * SECOND + 100_000, { take: 1 }, { refund: 4 }, { refund: 1_000_000_000 }, { take: 10 }, { reset: true }),
  ]),
  script('a block is apart from the tokens; the longest wins, 0 lifts it', per(10, SECOND), [
    at(NOW, { take: 10 }, { blockUs: 50_000 }, { blockUs: 5 * SECOND }, { blockUs: SECOND }),
    at(NOW + 2 * SECOND, { take: 1 }, { take: 11 }),
    at(NOW + 5 * SECOND - 1, { take: 1 }),
    at(NOW + 5 * SECOND, { take: 1 }, { blockUs: DAY }, { blockUs: 0 }, { blockUs: DAY }, { reset: true }),
  ]),
  script('a change of policy keeps what was spent, at most the new burst', per(100, SECOND, 200), [
    at(NOW, { take: 150 }, { update: per(100, SECOND, 300) }, { peek: 150 }, { update: per(7, MINUTE, 20) }, { take: 1 }),
    at(NOW + MINUTE, { take: 7 }, { update: per(1, DAY, 1) }, { take: 1 }),
    at(NOW + MINUTE + DAY, { take: 1 }),
  ]),
  script('1 per 30 days', per(1, 30 * DAY), [
    at(NOW, { take: 1 }, { take: 1 }),
    at(NOW + 30 * DAY - 1, { take: 1 }),
    at(NOW + 30 * DAY, { take: 1 }, { penalize: 10 }),
  ]),
  script('1,000,000,000 per second, burst 1,000,000,000', per(1_000_000_000, SECOND), [
    at(NOW, { take: 1_000_000_000 }, { take: 1 }),
    at(NOW + 1, { take: 1_001 }, { take: 1_000 }),
    at(NOW + SECOND, { peek: 1_000_000_000 }),
    at(NOW + SECOND + 1, { take: 1_000_000_000 }),
  ]),
  script('1,000,000,000 per 366 days: the longest window', per(1_000_000_000, 366 * DAY), [
    at(NOW, { take: 1_000_000_000 }),
    at(NOW + 31_622, { take: 1 }),
    at(NOW + 31_623, { take: 1 }),
    at(NOW + 366 * DAY, { peek: 999_999_999 }, { peek: 1_000_000_000 }),
  ]),
  script('1 per millisecond: the shortest window', per(1, 1000), [
    at(NOW, { take: 1 }),
    at(NOW + 999, { take: 1 }),
    at(NOW + 1000, { take: 1 }),
    at(NOW + 2000, { everyUs: 250, times: 4000, take: 1 }),
  ]),
  script('999,999,937 per second: a prime, where the emission interval is rounded up', per(999_999_937, SECOND, 1_000_000), [
    at(NOW, { take: 1_000_000 }),
    at(NOW + 1, { take: 1_000 }, { take: 999 }),
    at(NOW + 999, { peek: 1_000_000 }),
    at(NOW + 1000, { peek: 999_000 }),
    at(NOW + 1001, { peek: 1_000_000 }),
  ]),
  script('30 years idle, and 30 years of use', per(1000, SECOND, 5000), [
    at(0, { take: 5000 }),
    at(30 * YEAR, { take: 5000 }, { take: 1 }),
    at(30 * YEAR + 1000, { everyUs: 10 * DAY, times: 1000, take: 5000 }),
    at(58 * YEAR, { take: 5001 }),
  ]),
  script('bookings queue up behind each other; one that is cancelled gives back what no later booking relies on', per(10, SECOND), [
    at(NOW, { reserve: 11 }, { reserve: 10 }, { reserve: 5 }, { reserve: 3 }, { take: 1 }),
    at(NOW + 200_000, { cancel: 3 }, { reserve: 1 }),
    at(NOW + 300_000, { cancel: 2 }, { cancel: 2 }, { settle: 1, actual: 4 }, { settle: 1, actual: 0 }),
    at(NOW + 900_000, { peek: 1 }),
  ]),
  script('a booking settled above its estimate is a debt, below it the rest comes back', per(10, SECOND), [
    at(NOW, { reserve: 4 }),
    at(NOW + 100_000, { settle: 0, actual: 9 }, { reserve: 8 }),
    at(NOW + 150_000, { settle: 1, actual: 2 }, { peek: 10 }),
    at(NOW + 10 * SECOND, { cancel: 1 }, { peek: 10 }),
  ]),
]
