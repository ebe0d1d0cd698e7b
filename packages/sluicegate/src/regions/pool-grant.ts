import type { Grant } from '../lease/grant.js'
import { mostLeased } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import type { Batch, Drawn } from '../shared/region-pool.js'
import { isRate, PLENTY, type RegionTerms } from './region-terms.js'

/** How many leases of a process are remembered, and for how long after their tokens ended: beyond that these stay charged. */
const MOST_LEASES = 100_000
const KEPT_US = 60_000_000
/** Looked at for each new one, so that ended ones do not add up. */
const LOOKED_AT = 2

/** Where tokens go back that this process drew for its leases: to the oldest batch, by the id of the lease. Ids are below 0. */
export class PoolLeases {
  private readonly byId = new Map<number, Batch>()
  private last = 0

  of(id: number): Batch | undefined {
    return this.byId.get(id)
  }

  /** @param nowUs by the clock of the region's store. */
  add(batch: Batch, nowUs: number): number {
    const { byId } = this
    let looked = 0
    for (const [id, { endUs }] of byId) {
      if (endUs + KEPT_US < nowUs || byId.size >= MOST_LEASES) byId.delete(id)
      if (++looked >= LOOKED_AT) break
    }
    byId.set(--this.last, batch)
    return this.last
  }
}

/**
 * Drawn tokens as a grant to this process. It holds them for `leaseUs` at most, and returns those left. Those of a rate flow back at the home by
 * themselves: with plenty there they are not worth a call.
 *
 * @param deniedUs how long the key is denied where nothing was drawn.
 */
export function grantOfPool(
  { nowUs, tokens, batches, left, rest, blockedUs, fullUs, isScarce }: Drawn,
  deniedUs: number,
  policy: Policy,
  terms: RegionTerms,
  leaseUs: number,
  leases: PoolLeases,
): Grant {
  const budget = Math.min(1, (left + rest) / Math.max(1, mostLeased(policy, terms.leaseUs)))
  return {
    tokens,
    endUs: (token) => Math.min(leaseUs, endOf(token, batches) - nowUs),
    flowsBack: false,
    isReturned: !isRate(policy) || isScarce || budget < PLENTY,
    id: batches[0] && leases.add(batches[0], nowUs),
    untilFreeUs: deniedUs,
    untilFreeFor: () => (tokens > 0 ? undefined : deniedUs),
    blockedUs,
    remaining: Math.min(Math.max(policy.limit, policy.burst), left + rest),
    budget,
    untilNewUs: fullUs,
    hasMore: tokens > 0 && !isScarce,
  }
}

function endOf(token: number, batches: readonly Batch[]): number {
  let before = 0
  for (const { tokens, endUs } of batches) {
    before += tokens
    if (token < before) return endUs
  }
  return batches.at(-1)?.endUs ?? 0
}
