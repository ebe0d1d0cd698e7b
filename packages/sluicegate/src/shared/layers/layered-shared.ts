import { checkedPolicies, outerLayers } from '../../layers/limiter-layers.js'
import type { Override } from '../../layers/override-map.js'
import { withPromises } from '../../layers/promised.js'
import { checkedPlans, policyOfKey } from '../../plan-options.js'
import type { Policy } from '../../policy/policy.js'
import { withQueue } from '../../queue/create-queue.js'
import type { Clock } from '../../time/clock.js'
import type { SharedLimiter } from '../shared-limiter.js'
import { overridesStaleMs, type SharedOptions } from '../shared-options.js'
import { SharedPermit } from '../shared-permit.js'
import type { OverrideCache } from './override-cache.js'
import { tieredShared } from './tiered-shared.js'

/** Creates the shared limiter of each policy. */
export interface SharedMaker {
  /** @param override of keys whose policy it is. */
  readonly make: (policy: Policy, override?: Override) => SharedLimiter
  /** Whether another process says what a policy of a name is. */
  readonly isKnownByName?: boolean
  readonly clock: Clock
  /** @param own the limiter's own policy, now in force. */
  readonly overridesOf: (staleMs: number, own: () => Policy) => OverrideCache
}

/**
 * The shared limiter for the policy `own`, with the layers that the options ask for.
 *
 * @throws {PolicyError} before anything is made.
 */
export function layeredShared(own: Policy, maker: SharedMaker, options: SharedOptions): SharedLimiter {
  const policyFor = policyOfKey(options.policyFor)
  const outer = outerLayers({ ...options, clock: maker.clock }, SharedPermit.empty)
  const staleMs = overridesStaleMs(options.overrides)
  const plans = checkedPlans(options, own)
  const policies = checkedPolicies({ ...options, policyFor, overrides: staleMs !== undefined }, own)
  const plain = maker.make(own)
  const overrides = staleMs === undefined ? undefined : maker.overridesOf(staleMs, () => plain.policy)
  const isTiered = policyFor !== undefined || plans !== undefined || overrides !== undefined
  const tiered: SharedLimiter = isTiered ? tieredShared(plain, own, { ...maker, policyFor, plans, policies, overrides }) : plain
  const queued = withQueue(withPromises(outer(tiered)), maker.clock)
  return overrides === undefined ? queued : Object.assign(queued, { overrides })
}
