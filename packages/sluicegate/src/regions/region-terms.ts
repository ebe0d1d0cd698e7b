import { isRate, type Policy, policiesOf } from '../policy/policy.js'
import { shareOfPolicy } from '../shared/outage/share-of-policy.js'
import type { RegionStats } from '../shared/region-stats.js'

/** How long tokens of a region last, at most and at least, in microseconds. */
const [LONGEST_US, SHORTEST_US] = [4_000_000, 2_000_000]
/** Between two renewals of a key with steady demand. */
const PERIOD_US = 1_000_000
/** A burst must outlast this many leases: what flows back during one is left to takes at the home. */
const LEASES_OF_BURST = 2
/** A window must be this many leases long; of a log, whose tokens count until their lease ends, this many. */
const [LEASES_OF_WINDOW, LEASES_OF_LOG] = [10, 40]
/** Of a share of tokens. */
const ROUNDING = 1e-6
/** Fewer tokens are not split. */
const LEAST_LIMIT = 20
/** With more than this part of the budget left at the home, it need not be spared. */
export const PLENTY = 0.75

/** Constants of a policy, the same in all regions. */
export interface RegionTerms {
  readonly mode: RegionStats['mode']
  /** Why tokens are not held ahead; undefined where they are. */
  readonly why?: string | undefined
  /** How long a region may spend a token, in microseconds by the home's clock; 0 where it holds none. */
  readonly leaseUs: number
  readonly periodUs: number
}

/**
 * How long a region may hold tokens of a policy. A lease of a bucket leaves free what flows back while it lasts, so the burst has to be
 * longer; a window has to be much longer.
 *
 * @param split the part of policies too small for that which this region decides by itself; undefined: the home decides them.
 */
export function regionTermsOf(policy: Policy, split?: number): RegionTerms {
  const reason = whyNotHeld(policy)
  if (reason !== undefined) {
    if (split === undefined || !isDivisible(policy, split)) {
      const why =
        split === undefined ? reason : `${reason}; a share of ${Number(split.toPrecision(3))} is less than a token: the home decides`
      return { mode: 'home', why, leaseUs: 0, periodUs: PERIOD_US }
    }
    const lost = lostBy(policy, split)
    return { mode: 'share', why: lost === undefined ? reason : `${reason}; ${lost}`, leaseUs: 0, periodUs: PERIOD_US }
  }
  const leases = policiesOf(policy).map((part) => spanUs(part) / leasesOf(part))
  return { mode: 'tokens', leaseUs: Math.floor(Math.min(LONGEST_US, ...leases)), periodUs: PERIOD_US }
}

/** Tokens that flow back at the home while a lease lasts: fewer that ended unspent are not worth a call. */
export function flowingBack(policy: Policy, { leaseUs }: RegionTerms): number {
  return isRate(policy) ? (policy.limit * leaseUs) / (policy.windowMs * 1000) : 0
}

/** A share of less than a token would be rounded up. */
function isDivisible({ policies, limit, burst }: Policy, share: number): boolean {
  if (policies !== undefined) return policies.every((part) => isDivisible(part, share))
  return limit * share >= 1 && burst * share >= 1
}

/** Which tokens of a window no region has, where all have such a share. */
function lostBy(policy: Policy, share: number): string | undefined {
  for (const part of policiesOf(policy)) {
    const { limit } = shareOfPolicy(part, share)
    if (isRate(part) || limit > part.limit * share - ROUNDING) continue
    return `a share of ${Number(share.toPrecision(3))} of ${part.limit} tokens is rounded down to ${limit}: give regions shares of whole tokens`
  }
  return undefined
}

function whyNotHeld(policy: Policy): string | undefined {
  if (policy.policies !== undefined) {
    for (const part of policy.policies) {
      const reason = whyNotHeld(part)
      if (reason !== undefined) return `${part.name}: ${reason}`
    }
    return undefined
  }
  if (policy.algorithm === 'concurrency') return 'a permit belongs to its holder'
  if (policy.limit < LEAST_LIMIT && policy.burst < LEAST_LIMIT) return `fewer than ${LEAST_LIMIT} tokens are not split`
  const neededS = (SHORTEST_US * leasesOf(policy)) / 1_000_000
  if (spanUs(policy) >= neededS * 1_000_000) return undefined
  return isRate(policy) ? `its burst is less than the rate brings in ${neededS} s` : `its window is shorter than ${neededS} s`
}

/** Microseconds: of a rate until the whole burst has flowed back, else the window. */
function spanUs(policy: Policy): number {
  const { windowMs, burst, limit } = policy
  return isRate(policy) ? (burst / limit) * windowMs * 1000 : windowMs * 1000
}

function leasesOf(policy: Policy): number {
  if (isRate(policy)) return LEASES_OF_BURST
  return policy.algorithm === 'sliding-log' ? LEASES_OF_LOG : LEASES_OF_WINDOW
}
