import type { Request } from 'express'
import { preciseClock } from '../../clock.js'
import type { LimitRule } from '../../edge/limit-rule.js'
import { limitRules } from '../../edge/limit-rules.js'
import { MisuseWatch } from '../../edge/misuse-watch.js'
import type { OutageOption } from '../../edge/outage-choice.js'
import { onceInProcess } from '../../once-in-process.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import type { UsedOptions } from './rate-limit-options.js'

/** Told of each request that is asked about. */
export const requestWatch = /* @__PURE__ */ onceInProcess('misuse watch of moved routes', () => new MisuseWatch())

/** What asks a limiter about requests, as all middleware here does it. */
export function requestRule(limiter: LimiterVerbs, used: UsedOptions): LimitRule<Request> {
  const { skipFailedRequests, skipSuccessfulRequests, passOnStoreError, logger } = used
  const mayComeBack = skipFailedRequests || skipSuccessfulRequests
  const pass: OutageOption<Request> = ({ error }) => {
    if (error !== undefined) logger.error(error, 'error from the limiter, the request passes without it')
    return 'open'
  }
  const [rule] = limitRules<Request>(
    { limiter, counts: mayComeBack ? 'successes' : 'all', ...(passOnStoreError && { onOutage: pass }) },
    { watch: requestWatch, nowMs: preciseClock().nowMs },
  )
  return rule as LimitRule<Request>
}
