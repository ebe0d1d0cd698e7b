import { DAY, NOW, SECOND, script, YEAR } from './script.js'
import type { Vector, VectorPolicy } from './vector.js'

// Scripts that are the same for several algorithms.

/** @param policy 10 in a second. */
export function impossibleCost(policy: VectorPolicy): Vector {
  return script('an impossible cost charges nothing; a denial changes nothing', policy, [
    { atUs: NOW, take: 11 },
    { atUs: NOW, take: 8 },
    { atUs: NOW, times: 100, take: 3 },
    { atUs: NOW, peek: 2 },
    { atUs: NOW, take: 2 },
  ])
}

/** @param policy 10 in a second. */
export function blocked(name: string, policy: VectorPolicy, atUs: number): Vector {
  return script(name, policy, [
    { atUs, take: 10 },
    { atUs, blockUs: 50_000 },
    { atUs, blockUs: 5 * SECOND },
    { atUs: atUs + SECOND, take: 1 },
    { atUs: atUs + 5 * SECOND - 1, take: 1 },
    { atUs: atUs + 5 * SECOND, take: 1 },
    { atUs: atUs + 5 * SECOND, blockUs: DAY },
    { atUs: atUs + 5 * SECOND, blockUs: 0 },
  ])
}

/** @param policy 1,000 in a second. @param fullAfterUs when they have come back. */
export function thirtyYears(policy: VectorPolicy, fullAfterUs: number): Vector {
  return script('30 years idle, and 30 years of use', policy, [
    { atUs: 0, take: 1000 },
    { atUs: 30 * YEAR, take: 1000 },
    { atUs: 30 * YEAR, take: 1 },
    { atUs: 30 * YEAR + fullAfterUs, everyUs: 10 * DAY, times: 1000, take: 1000 },
  ])
}
