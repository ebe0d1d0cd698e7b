import { PolicyError } from '../../errors.js'
import { checkedPolicy } from '../../policy/checked-policy.js'
import { changedPolicy, type Policy } from '../../policy/policy.js'

/** The longest window of a policy. */
const LONGEST_WINDOW_MS = 366 * 86_400_000

/**
 * The policy with a share of its budget, 0 < share <= 1: at most `share` of its rate, but at least a token in 366 days; burst and limits are
 * rounded down, to at least one token. Where a window's share is less than a token, the window gets longer instead, so that the shares of all
 * processes together keep the rate; not a calendar window. The name stays.
 */
export function shareOfPolicy(policy: Policy, share: number): Policy {
  return checkedPolicy(shared(policy, share))
}

function shared(policy: Policy, share: number): Policy {
  const { algorithm, policies, windowMs, burst } = policy
  if (policies !== undefined) return changedPolicy(policy, { policies: policies.map((part) => shared(part, share)) })
  const limit = atLeastOne(policy.limit * share)
  const tokenMs = windowMs / (policy.limit * share)
  if (algorithm !== 'token-bucket' && algorithm !== 'gcra') {
    const isLonger = tokenMs > windowMs && algorithm !== 'concurrency' && policy.calendar === undefined
    return changedPolicy(policy, { limit, burst: limit, ...(isLonger && { windowMs: Math.min(LONGEST_WINDOW_MS, wholeUs(tokenMs)) }) })
  }
  return sharedRate(changedPolicy(policy, { limit, windowMs: Math.max(1, wholeUs(limit * tokenMs)), burst: atLeastOne(burst * share) }))
}

/** A token every N whole microseconds, where the numbers of a share cannot be counted exactly. */
function sharedRate(policy: Policy): Policy {
  if (policy.windowMs > LONGEST_WINDOW_MS)
    return changedPolicy(policy, { limit: 1, windowMs: Math.min(LONGEST_WINDOW_MS, wholeUs(policy.windowMs / policy.limit)) })
  try {
    return checkedPolicy(policy)
  } catch (error) {
    if (!(error instanceof PolicyError) || error.code !== 'RANGE_UNSUPPORTED') throw error
    const tokenMs = wholeUs(policy.windowMs / policy.limit)
    const limit = Math.min(policy.limit, Math.floor(LONGEST_WINDOW_MS / tokenMs))
    return changedPolicy(policy, { limit, windowMs: wholeUs(limit * tokenMs) })
  }
}

function wholeUs(ms: number): number {
  return Math.ceil(ms * 1000) / 1000
}

/** 0.29 of 100 is 28.999999999999996. */
const ROUNDING = 2 * Number.EPSILON

function atLeastOne(tokens: number): number {
  return Math.max(1, Math.floor(tokens * (1 + ROUNDING)))
}
