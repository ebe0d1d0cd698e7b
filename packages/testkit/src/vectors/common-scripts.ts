import { at, DAY, NOW, SECOND, script, YEAR } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

// Scripts that are the same for several algorithms.

/** @param policy 10 in a second. */
export function impossibleCost(policy: VectorPolicy): Vector {
  return script('an impossible cost charges nothing; a denial changes nothing', policy, [
    at(NOW, { take: 11 }, { take: 8 }, { times: 100, take: 3 }, { peek: 2 }, { take: 2 }),
  ])
}

/** @param policy 10 in a second. */
export function blocked(name: string, policy: VectorPolicy, atUs: number): Vector {
  return script(name, policy, [
    at(atUs, { take: 10 }, { blockUs: 50_000 }, { blockUs: 5 * SECOND }),
    at(atUs + SECOND, { take: 1 }),
    at(atUs + 5 * SECOND - 1, { take: 1 }),
    at(atUs + 5 * SECOND, { take: 1 }, { blockUs: DAY }, { blockUs: 0 }),
  ])
}

/** @param policy 1,000 in a second. @param fullAfterUs when they have come back. */
export function thirtyYears(policy: VectorPolicy, fullAfterUs: number): Vector {
  return script('30 years idle, and 30 years of use', policy, [
    at(0, { take: 1000 }),
    at(30 * YEAR, { take: 1000 }, { take: 1 }),
    at(30 * YEAR + fullAfterUs, { everyUs: 10 * DAY, times: 1000, take: 1000 }),
  ])
}
