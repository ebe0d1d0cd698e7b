import { PolicyError } from '../errors.js'
import { allOf } from './all-of.js'
import type { Algorithm, Policy } from './policy.js'
import { type PolicyMaker, remadePolicy, SINGLE_POLICIES } from './single-policy.js'

export { besideFields, isMade, notOfPolicy } from './single-policy.js'

const POLICIES: Readonly<Record<Algorithm, PolicyMaker>> = {
  ...SINGLE_POLICIES,
  'all-of': ({ policies = [], name }) => allOf(policies, { name }),
}

/**
 * Refuses anything that is not a policy made by `tokenBucket` or one of its siblings, or a structured clone of one.
 *
 * @param takenBy the function that takes it, for the message: `createLimiter`.
 * @throws {PolicyError} `POLICY_INVALID`; `OPTION_UNKNOWN` where options stand beside its numbers, which would count for nothing
 */
export function checkedPolicy(policy: unknown, option = 'policy', takenBy?: string): Policy {
  return remadePolicy(POLICIES, policy, option, takenBy)
}

/** @throws {PolicyError} `ALGORITHM_CHANGE` */
export function checkChange(before: Policy, next: Policy): void {
  if (next.algorithm !== before.algorithm) {
    const hint = `must stay ${before.algorithm}: make a new limiter to change the algorithm`
    throw new PolicyError('ALGORITHM_CHANGE', 'policy', next.algorithm, hint)
  }
}
