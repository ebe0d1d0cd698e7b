import { checkHeaderOptions } from '../headers/header-options.js'
import { countsOf } from './counted.js'
import { bodyMaker } from './denial-body.js'
import { statusesOf } from './denial-status.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'
import { keyFinder } from './key-source.js'
import { namesLimit } from './limit-argument.js'
import { checkedLimits } from './limit-rules.js'
import { outageChoice } from './outage-choice.js'

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
