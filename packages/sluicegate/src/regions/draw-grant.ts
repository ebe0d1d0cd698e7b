import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import type { Drawn } from './region-pool.js'

/**
 * Drawn tokens as a grant to this process, which holds them for `leaseUs` at most and then returns those left: its id says when the first of
 * them end.
 */
export function grantOfDraw(
  { nowUs, tokens, lots, left, rest, deniedUs, blockedUs, fullUs, isScarce }: Drawn,
  { limit, burst }: Policy,
  leaseUs: number,
): Grant {
  return {
    availableNow: tokens,
    availableLater: 0,
    beginUs: () => 0,
    endUs: (token) => Math.min(leaseUs, endOf(token, lots) - nowUs),
    flowsBack: false,
    id: lots[0] && -lots[0].endUs,
    untilFreeUs: tokens > 0 ? 0 : deniedUs,
    untilFreeFor: () => (tokens > 0 ? undefined : deniedUs),
    blockedUs,
    remaining: Math.min(Math.max(limit, burst), left + rest),
    untilNewUs: fullUs,
    hasMore: tokens > 0 && !isScarce,
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
