import { PolicyError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { LimiterVerbs } from './limiter-verbs.js'

/** Makes the limiter of a policy that was read from another library's options. */
export type MakeLimiter = (policy: Policy) => LimiterVerbs

const EXAMPLE = '(policy) => createRedisLimiter(policy, { client })'

/**
 * The limiter that `create` makes of this policy, and of no other: what the options say is what counts.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function madeLimiter(create: MakeLimiter, policy: Policy): LimiterVerbs {
  if (typeof create !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'create', create, `must be a function of the policy, such as ${EXAMPLE}`)
  }
  const limiter = create(policy)
  const own = typeof limiter?.take === 'function' ? limiter.policy : undefined
  const { algorithm, limit, windowMs } = policy
  if (own?.algorithm === algorithm && own.limit === limit && own.windowMs === windowMs) return limiter
  throw new PolicyError('OPTION_INVALID', 'create', create, `must make a limiter of the policy that it is given, as ${EXAMPLE} does`)
}
