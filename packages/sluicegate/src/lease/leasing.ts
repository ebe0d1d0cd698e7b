import type { Policy } from '../policy/policy.js'
import { emissionOf } from '../policy/policy-numbers.js'

/** The clocks of a process and the backend may differ in pace by one part in this many. */
export const CLOCK_DRIFT = 1000

/** The length of a lease in horizons. */
export const LEASE_HORIZONS = 2
/** Tokens that a bucket must hold beyond what flows back during a lease. */
const LEAST_BURST = 2
/** A leased window is at least this many leases long, and its limit at least this many tokens. */
const LEAST_LEASES = 20
const LEAST_LIMIT = 20

/** How long a leased token may be spent, in microseconds: a constant of the policy, the same in the whole fleet. */
export function leaseUsOf(horizonMs: number): number {
  return Math.round(LEASE_HORIZONS * horizonMs * 1000)
}

/**
 * Why a policy cannot be leased; undefined where it can. A rate must give at least a token per lease, and its burst must hold more than
 * flows back meanwhile; a window must be much longer than a lease. The backend decides each take of a policy that is too small, and nothing is lost.
 */
export function whyNotLeased(policy: Policy, horizonMs: number): string | undefined {
  const leaseMs = leaseUsOf(horizonMs) / 1000
  const { algorithm, limit, windowMs, burst } = policy
  switch (algorithm) {
    case 'concurrency':
      return 'a permit belongs to its holder, and cannot be handed out ahead'
    case 'all-of':
      return undefined
    case 'token-bucket':
    case 'gcra': {
      const perLease = (limit * leaseMs) / windowMs
      if (perLease < 1) return `it gives less than a token in ${leaseMs} ms, the length of a lease`
      return burst < LEAST_BURST + perLease ? `a burst of ${burst} has no room for a lease of ${leaseMs} ms` : undefined
    }
    default:
      if (policy.calendar?.unit === 'ever') return 'what a process that dies has leased would never come back'
      if (windowMs < LEAST_LEASES * leaseMs) return `its window is shorter than ${LEAST_LEASES} leases of ${leaseMs} ms`
      return limit < LEAST_LIMIT ? `its limit is below ${LEAST_LIMIT}` : undefined
  }
}

/** The most tokens that leases of a policy ever hold at once. The backend decides a larger cost. */
export function mostLeased(policy: Policy, leaseUs: number): number {
  if (policy.algorithm !== 'token-bucket' && policy.algorithm !== 'gcra') return policy.limit
  const { capacity, unitsPerToken, unitsPerUs } = emissionOf(policy)
  return Math.floor((capacity - leaseUs * unitsPerUs) / unitsPerToken)
}

/** A duration on this process's clock, which may be slow, that surely does not outlast `us` on the backend's. */
export function surelyUs(us: number): number {
  return us - us / CLOCK_DRIFT
}
