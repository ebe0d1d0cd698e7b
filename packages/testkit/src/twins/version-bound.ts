import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { specOf } from '../kit.js'
import type { LeasedPolicy } from '../leases/lease-draws.js'
import type { SinglePolicySpec } from '../oracle/policy-spec.js'

/** So much may be given at least, however little the burst is larger than what flows in during a lease. */
const LEAST_TOKENS = 2
const WAITED_LEASES = 1.5

/**
 * What several versions of a policy may let pass together, whatever the mix: the largest burst and the highest rate, or the largest limit. Where
 * the rate of one is so high that the bursts are less than flows in until a token of another is spent, and two tokens, that instead of the burst.
 */
export function boundOf(versions: readonly Pick<LeasedPolicy, 'policy' | 'leaseUs'>[]): SinglePolicySpec {
  const policies = versions.map(({ policy }) => policy)
  const [first] = policies
  if (first === undefined) throw new RangeError('no version')
  if (first.algorithm === 'token-bucket' || first.algorithm === 'gcra') {
    const fastest = policies.reduce((most, policy) => (rateOf(policy) > rateOf(most) ? policy : most))
    const longestUs = Math.max(...versions.map(({ leaseUs }) => leaseUs))
    const flowsIn = longestUs === 0 || versions.length === 1 ? 0 : rateOf(fastest) * longestUs
    // Where the fastest is not alone, slower ones lease tokens ahead beside it.
    const waitedLeases = policies.every((policy) => rateOf(policy) === rateOf(fastest)) ? 1 : WAITED_LEASES
    const isTight = Math.max(...policies.map(({ burst }) => burst)) < flowsIn * waitedLeases + LEAST_TOKENS
    const least = isTight ? Math.ceil(flowsIn * WAITED_LEASES) + LEAST_TOKENS : 0
    return { ...specOf(fastest), burst: Math.max(least, ...policies.map(({ burst }) => burst)) } as SinglePolicySpec
  }
  return { ...specOf(first), limit: Math.max(...policies.map(({ limit }) => limit)) } as SinglePolicySpec
}

export function namesOf(versions: readonly LeasedPolicy[]): string {
  return versions.map(({ policy, leaseUs }) => `${policy.name} burst ${policy.burst} leased for ${leaseUs} us`).join(', ')
}

/** Tokens a microsecond. */
function rateOf({ limit, windowMs }: Policy): number {
  return limit / (windowMs * 1000)
}
