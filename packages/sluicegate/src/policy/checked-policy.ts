import { allOf } from './all-of.js'
import type { Algorithm, Policy } from './policy.js'
import { type PolicyMaker, remadePolicy, SINGLE_POLICIES } from './single-policy.js'

export { besideFields, notOfPolicy } from './single-policy.js'

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
