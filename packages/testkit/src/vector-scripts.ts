import type { Vector, VectorPolicy, VectorStep } from './vector.js'

const SECOND = 1_000_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY + 6 * HOUR
/** In September 2026, and no round number of anything. */
const NOW = 1_789_000_000_123_457

function per(limit: number, windowUs: number, burst = limit): VectorPolicy {
  return { limit, windowUs, burst }
}

function script(name: string, policy: VectorPolicy, steps: readonly VectorStep[]): Vector {
  return { name, policy, steps }
}

/** What the golden vectors ask, without the answers: those come from the oracle. The same for both algorithms. */
export const VECTOR_SCRIPTS: readonly Vector[] = [
  script('a burst at once, then one token each emission interval', per(10, SECOND), [
    { atUs: NOW, times: 10, take: 1 },
    { atUs: NOW, take: 1 },
    { atUs: NOW + 99_999, take: 1 },
    { atUs: NOW + 100_000, take: 1 },
    { atUs: NOW + 100_000, peek: 1 },
    { atUs: NOW + SECOND, peek: 10 },
    { atUs: NOW + SECOND + 100_000, peek: 10 },
  ]),
  script('a burst of one spaces requests evenly', per(100, SECOND, 1), [
    { atUs: NOW, take: 1 },
    { atUs: NOW + 9_999, take: 1 },
    { atUs: NOW + 10_000, take: 1 },
    { atUs: NOW + 20_000, everyUs: 10_000, times: 1000, take: 1 },
  ]),
  script('costs above one; a cost above the burst can never pass and charges nothing', per(5, SECOND, 20), [
    { atUs: NOW, take: 21 },
    { atUs: NOW, take: 13 },
    { atUs: NOW, take: 8 },
    { atUs: NOW, take: 7 },
    { atUs: NOW, peek: 20 },
    { atUs: NOW + 3_999_999, take: 20 },
    { atUs: NOW + 4_000_000, take: 20 },
    { atUs: NOW + 4_000_000, peek: 21 },
  ]),
  script('waits are rounded up to milliseconds, tokens down to whole ones', per(3, 10_000), [
    { atUs: NOW, take: 3 },
    { atUs: NOW + 1, peek: 1 },
    { atUs: NOW + 3_333, peek: 1 },
    { atUs: NOW + 3_334, peek: 1 },
    { atUs: NOW + 6_666, peek: 2 },
    { atUs: NOW + 6_667, peek: 2 },
    { atUs: NOW + 9_999, peek: 3 },
    { atUs: NOW + 10_000, peek: 3 },
  ]),
  script('polled every microsecond, the bucket still refills', per(1000, SECOND, 3), [
    { atUs: NOW, take: 3 },
    { atUs: NOW + 1, everyUs: 1, times: 10_000, take: 1 },
    { atUs: NOW + 10_001, peek: 1 },
  ]),
  script('7 per 60 s does not drift', per(7, MINUTE), [
    { atUs: NOW, take: 7 },
    { atUs: NOW + MINUTE, everyUs: MINUTE, times: 10_000, take: 7 },
    { atUs: NOW + 10_000 * MINUTE + 8_571_428, take: 1 },
    { atUs: NOW + 10_000 * MINUTE + 8_571_429, take: 1 },
    { atUs: NOW + 10_000 * MINUTE + 17_142_857, take: 1 },
    { atUs: NOW + 10_000 * MINUTE + 17_142_858, take: 1 },
  ]),
  script('the clock steps back: nothing is granted, nobody waits longer than the step', per(10, SECOND), [
    { atUs: NOW, take: 10 },
    { atUs: NOW - SECOND, take: 1 },
    { atUs: NOW - SECOND, peek: 10 },
    { atUs: NOW - 1, take: 1 },
    { atUs: NOW + 100_000, take: 1 },
    { atUs: NOW - HOUR, peek: 1 },
    { atUs: NOW + 200_000, take: 1 },
  ]),
  script('debt: a penalty goes down to ten bursts below empty, a refund up to full', per(10, SECOND), [
    { atUs: NOW, penalize: 15 },
    { atUs: NOW, take: 1 },
    { atUs: NOW, penalize: 1_000_000_000 },
    { atUs: NOW + SECOND, peek: 1 },
    { atUs: NOW + 10 * SECOND + 99_999, take: 1 },
    { atUs: NOW + 10 * SECOND + 100_000, take: 1 },
    { atUs: NOW + 10 * SECOND + 100_000, refund: 4 },
    { atUs: NOW + 10 * SECOND + 100_000, refund: 1_000_000_000 },
    { atUs: NOW + 10 * SECOND + 100_000, take: 10 },
    { atUs: NOW + 10 * SECOND + 100_000, reset: true },
  ]),
  script('a block is apart from the tokens; the longest wins, 0 lifts it', per(10, SECOND), [
    { atUs: NOW, take: 10 },
    { atUs: NOW, blockUs: 50_000 },
    { atUs: NOW, blockUs: 5 * SECOND },
    { atUs: NOW, blockUs: SECOND },
    { atUs: NOW + 2 * SECOND, take: 1 },
    { atUs: NOW + 2 * SECOND, take: 11 },
    { atUs: NOW + 5 * SECOND - 1, take: 1 },
    { atUs: NOW + 5 * SECOND, take: 1 },
    { atUs: NOW + 5 * SECOND, blockUs: DAY },
    { atUs: NOW + 5 * SECOND, blockUs: 0 },
    { atUs: NOW + 5 * SECOND, blockUs: DAY },
    { atUs: NOW + 5 * SECOND, reset: true },
  ]),
  script('a change of policy keeps what was spent, at most the new burst', per(100, SECOND, 200), [
    { atUs: NOW, take: 150 },
    { atUs: NOW, update: per(100, SECOND, 300) },
    { atUs: NOW, peek: 150 },
    { atUs: NOW, update: per(7, MINUTE, 20) },
    { atUs: NOW, take: 1 },
    { atUs: NOW + MINUTE, take: 7 },
    { atUs: NOW + MINUTE, update: per(1, DAY, 1) },
    { atUs: NOW + MINUTE, take: 1 },
    { atUs: NOW + MINUTE + DAY, take: 1 },
  ]),
  script('1 per 30 days', per(1, 30 * DAY), [
    { atUs: NOW, take: 1 },
    { atUs: NOW, take: 1 },
    { atUs: NOW + 30 * DAY - 1, take: 1 },
    { atUs: NOW + 30 * DAY, take: 1 },
    { atUs: NOW + 30 * DAY, penalize: 10 },
  ]),
  script('1,000,000,000 per second, burst 1,000,000,000', per(1_000_000_000, SECOND), [
    { atUs: NOW, take: 1_000_000_000 },
    { atUs: NOW, take: 1 },
    { atUs: NOW + 1, take: 1_001 },
    { atUs: NOW + 1, take: 1_000 },
    { atUs: NOW + SECOND, peek: 1_000_000_000 },
    { atUs: NOW + SECOND + 1, take: 1_000_000_000 },
  ]),
  script('1,000,000,000 per 366 days: the longest window', per(1_000_000_000, 366 * DAY), [
    { atUs: NOW, take: 1_000_000_000 },
    { atUs: NOW + 31_622, take: 1 },
    { atUs: NOW + 31_623, take: 1 },
    { atUs: NOW + 366 * DAY, peek: 999_999_999 },
    { atUs: NOW + 366 * DAY, peek: 1_000_000_000 },
  ]),
  script('1 per millisecond: the shortest window', per(1, 1000), [
    { atUs: NOW, take: 1 },
    { atUs: NOW + 999, take: 1 },
    { atUs: NOW + 1000, take: 1 },
    { atUs: NOW + 2000, everyUs: 250, times: 4000, take: 1 },
  ]),
  script('999,999,937 per second: a prime, where the emission interval is rounded up', per(999_999_937, SECOND, 1_000_000), [
    { atUs: NOW, take: 1_000_000 },
    { atUs: NOW + 1, take: 1_000 },
    { atUs: NOW + 1, take: 999 },
    { atUs: NOW + 999, peek: 1_000_000 },
    { atUs: NOW + 1000, peek: 999_000 },
    { atUs: NOW + 1001, peek: 1_000_000 },
  ]),
  script('30 years idle, and 30 years of use', per(1000, SECOND, 5000), [
    { atUs: 0, take: 5000 },
    { atUs: 30 * YEAR, take: 5000 },
    { atUs: 30 * YEAR, take: 1 },
    { atUs: 30 * YEAR + 1000, everyUs: 10 * DAY, times: 1000, take: 5000 },
    { atUs: 58 * YEAR, take: 5001 },
  ]),
]
