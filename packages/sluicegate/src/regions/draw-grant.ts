import type { Grant } from '../lease/grant.js'
import { mostLeased } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import type { Drawn } from '../shared/region-pool.js'
import type { DrawnLots } from './drawn-lots.js'
import { isRate, PLENTY, type RegionTerms } from './region-terms.js'

/** Drawn tokens as a grant to this process. */
export type GrantOfDraw = (drawn: Drawn) => Grant

/**
 * A process holds drawn tokens for `leaseUs` at most, and returns those left, to the lot of the first of them. Those of a rate flow back at the
 * home by themselves: with plenty there they are not worth a call.
 *
 * @param drawnLots remembers where they go back.
 */
export function grantsOfDraws(policy: Policy, leaseUs: number, terms: RegionTerms, drawnLots: DrawnLots): GrantOfDraw {
  const flowsBackAtHome = isRate(policy)
  const full = Math.max(policy.limit, policy.burst)
  const most = Math.max(1, mostLeased(policy, terms.leaseUs))
  return ({ nowUs, tokens, lots, left, rest, deniedUs, blockedUs, fullUs, isScarce }) => {
    const untilFreeUs = tokens > 0 ? 0 : deniedUs
    const budget = Math.min(1, (left + rest) / most)
    return {
      availableNow: tokens,
      availableLater: 0,
      beginUs: () => 0,
      endUs: (token) => Math.min(leaseUs, endOf(token, lots) - nowUs),
      flowsBack: false,
      isReturned: !flowsBackAtHome || isScarce || budget < PLENTY,
      id: lots[0] && drawnLots.add(lots[0], nowUs),
      untilFreeUs,
      untilFreeFor: () => (tokens > 0 ? undefined : deniedUs),
      blockedUs,
      remaining: Math.min(full, left + rest),
      budget,
      untilNewUs: fullUs,
      hasMore: tokens > 0 && !isScarce,
    }
  }
}

function endOf(token: number, lots: Drawn['lots']): number {
  let before = 0
  for (const { tokens, endUs } of lots) {
    before += tokens
    if (token < before) return endUs
  }
  return lots.at(-1)?.endUs ?? 0
}
