import { holdsPermits } from '../empty-permit.js'
import { checkHeaderOptions } from '../headers/header-options.js'
import { bodyMaker, statusesOf } from './denial-response.js'
import { keyFinder } from './key-source.js'
import { namesLimit } from './limit-argument.js'
import { checkedLimits, policyIn } from './limits.js'
import type { GatekeeperOptions } from './middleware-options.js'
import { outageChoice } from './outage-choice.js'
import { countsOf } from './settle.js'

/** Looks at all that options of `takenBy` say, of a limit or of how those of routes are to be, and makes nothing. @throws {PolicyError} */
export function checkGatekeeperOptions<Request>(options: GatekeeperOptions<Request>, takenBy?: string): void {
  if (namesLimit(options, takenBy)) checkedLimits(options)
  else keyFinder(options.key)
  const { headers, body, status, counts, onOutage } = options
  checkHeaderOptions(typeof headers === 'object' ? headers : { ...(headers !== undefined && { version: headers }) })
  bodyMaker(body)
  statusesOf(status)
  countsOf(counts)
  outageChoice(onOutage)
}

/**
 * Whether something is to be done once a response has ended: what does not count comes back, and so do places of `concurrency`. Of a policy
 * that is chosen for each request that is known only then.
 */
export function needsResponse<Request>(options: GatekeeperOptions<Request>): boolean {
  const { counts = 'all', limits = [options] } = options
  return counts !== 'all' || limits.map(policyIn).some((policy) => policy !== undefined && holdsPermits(policy))
}
