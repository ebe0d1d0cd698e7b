import type { Grant } from '../lease/grant.js'
import { mostLeased } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import { newOperationId } from '../shared/backend.js'
import type { KeptById } from '../shared/kept-by-id.js'
import type { Drawn, PoolBatch } from '../shared/region-pool.js'
import { flowingBack, PLENTY, type RegionTerms } from './region-terms.js'

/** How long after their end tokens of a lease may come back. */
const KEPT_US = 60_000_000

/**
 * Drawn tokens as a grant to this process. It holds them for `processLeaseUs` at most, and returns those left. Those of a rate that flow back at the
 * home by themselves are not worth a call with plenty there.
 *
 * @param deniedUs how long the key is denied where nothing was drawn.
 * @param leases remembers, by the id of the lease, the oldest batch: its tokens go back to that.
 */
export function grantOfPool(
  { nowUs, tokens, batches, left, rest, blockedUs, fullUs, isScarce }: Drawn,
  deniedUs: number,
  policy: Policy,
  terms: RegionTerms,
  processLeaseUs: number,
  leases: KeptById<PoolBatch>,
): Grant {
  const budget = Math.min(1, (left + rest) / Math.max(1, mostLeased(policy, terms.leaseUs)))
  return {
    tokens,
    endUs: (token) => Math.min(processLeaseUs, endOf(token, batches) - nowUs),
    flowsBack: false,
    isReturned: tokens > flowingBack(policy, terms) || isScarce || budget < PLENTY,
    id: batches[0] && kept(leases, batches[0], nowUs),
    untilFreeUs: deniedUs,
    untilFreeFor: () => (tokens > 0 ? undefined : deniedUs),
    blockedUs,
    remaining: Math.min(Math.max(policy.limit, policy.burst), left + rest),
    budget,
    untilNewUs: fullUs,
    hasMore: tokens > 0 && !isScarce,
  }
}

/** @returns the id of the lease, below 0: those of the home are above it. */
function kept(leases: KeptById<PoolBatch>, oldest: PoolBatch, nowUs: number): number {
  const id = -newOperationId()
  leases.set(id, oldest, oldest.endUs + KEPT_US, nowUs)
  return id
}

function endOf(token: number, batches: readonly PoolBatch[]): number {
  let before = 0
  for (const { tokens, endUs } of batches) {
    before += tokens
    if (token < before) return endUs
  }
  return batches.at(-1)?.endUs ?? 0
}
