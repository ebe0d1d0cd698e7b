import { holdsPermits } from '../empty-permit.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'
import { policyIn } from './limit-rules.js'

/**
 * Whether something is to be done once a response has ended: what does not count comes back, and so do places of `concurrency`. Of a policy
 * that is chosen for each request that is known only then.
 */
export function needsResponse<Request>(options: GatekeeperOptions<Request>): boolean {
  const { counts = 'all', limits = [options] } = options
  return counts !== 'all' || limits.map(policyIn).some((policy) => policy !== undefined && holdsPermits(policy))
}
