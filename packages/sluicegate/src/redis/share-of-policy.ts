import { checkedPolicy } from '../checked-policy.js'
import type { Policy } from '../policy.js'

/**
 * A policy with a share of the budget, 0 < share <= 1, at least one token: a rate of at most `share` of the policy's, a burst and limits
 * rounded down. Its name stays.
 */
export function shareOfPolicy(policy: Policy, share: number): Policy {
  return checkedPolicy(shared(policy, share))
}

function shared(policy: Policy, share: number): Policy {
  const { algorithm, policies, windowMs, burst } = policy
  if (policies !== undefined) return { ...policy, policies: policies.map((part) => shared(part, share)) }
  const limit = atLeastOne(policy.limit * share)
  if (algorithm !== 'token-bucket' && algorithm !== 'gcra') return { ...policy, limit, burst: limit }
  // A share of a small limit is no whole number: its window is longer instead.
  const longerMs = Math.ceil((limit * windowMs * 1000) / (policy.limit * share)) / 1000
  return { ...policy, limit, windowMs: longerMs, burst: atLeastOne(burst * share) }
}

function atLeastOne(tokens: number): number {
  return Math.max(1, Math.floor(tokens))
}
