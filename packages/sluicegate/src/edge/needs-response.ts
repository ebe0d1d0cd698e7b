import { holdsPermits } from '../empty-permit.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'

/** Whether something is to be done once a response has ended: what does not count comes back, and so do places of `concurrency`. */
export function needsResponse<Request>(options: GatekeeperOptions<Request>): boolean {
  const { counts = 'all', limits = [options] } = options
  return counts !== 'all' || limits.map(({ limiter, policy }) => limiter?.policy ?? policy).some((policy) => policy && holdsPermits(policy))
}
