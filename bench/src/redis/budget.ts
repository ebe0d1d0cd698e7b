import { sum } from 'sluicegate-testkit/samples.js'
import { BURST, RATE_PER_S } from './bucket.js'
import type { Stint } from './stint.js'

/**
 * What the keys were worth, and what was made of it. The budget is that of all keys, each by itself over the whole run, from the first question to the last answer: longer than the authority
 * saw it, so that what is counted as over is over on every clock.
 *
 * @param leaseMs of the policy that is leased: while a token is good, what flows back is not in the burst.
 */
export function budgetUse({ admitted, elapsedMs }: Pick<Stint, 'admitted' | 'elapsedMs'>, leaseMs: number) {
  const ofOne = BURST + (RATE_PER_S * elapsedMs) / 1000
  const ofOneLeased = ofOne - (RATE_PER_S * leaseMs) / 1000
  return {
    admitted: sum(admitted),
    budget: ofOne * admitted.length,
    leasedBudget: ofOneLeased * admitted.length,
    overGrant: sum(admitted.map((tokens) => Math.max(0, tokens - Math.floor(ofOne)))),
  }
}
