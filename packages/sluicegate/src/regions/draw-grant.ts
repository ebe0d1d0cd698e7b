import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import type { Drawn } from './region-pool.js'

/** Drawn tokens as a grant to this process. They last as long as the region has them, and do not go back. */
export function grantOfDraw({ nowUs, tokens, lots, left, rest, deniedUs, blockedUs, fullUs, isScarce }: Drawn, { limit }: Policy): Grant {
  return {
    availableNow: tokens,
    availableLater: 0,
    beginUs: () => 0,
    endUs: (token) => endOf(token, lots) - nowUs,
    flowsBack: false,
    untilFreeUs: tokens > 0 ? 0 : deniedUs,
    untilFreeFor: () => (tokens > 0 ? undefined : deniedUs),
    blockedUs,
    remaining: Math.min(limit, left + rest),
    untilNewUs: fullUs,
    hasMore: tokens > 0 && !isScarce,
  }
}

/** The same tokens, of which none go back: the process would return them to another store than the one that it knows. */
export function heldGrant(grant: Grant): Grant {
  const { availableNow, availableLater, untilFreeUs, blockedUs, remaining, untilNewUs } = grant
  return {
    availableNow,
    availableLater,
    beginUs: (token) => grant.beginUs(token),
    endUs: (token) => grant.endUs(token),
    flowsBack: false,
    untilFreeUs,
    untilFreeFor: (tokens) => grant.untilFreeFor(tokens),
    blockedUs,
    remaining,
    untilNewUs,
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
