import { checkedTop } from '../../arguments.js'
import type { Decision } from '../../decision/decision.js'
import type { Override } from '../../layers/override-map.js'
import { contentOf } from '../../layers/tier-table.js'
import { TieredLimiter } from '../../layers/tiered-limiter.js'
import type { Plans } from '../../plan-options.js'
import { checkChange } from '../../policy/checked-policy.js'
import type { Policy } from '../../policy/policy.js'
import { sumOfStats } from '../../sum-of-stats.js'
import type { Clock } from '../../time/clock.js'
import { mergedLoads } from '../calls/shard-load.js'
import { sumOfRegions } from '../region-stats.js'
import type { SharedLimiter, SharedStats } from '../shared-limiter.js'
import type { OverrideCache } from './override-cache.js'
import { PlannedPolicies } from './planned-policies.js'

/** What {@link tieredShared} puts around the limiter of the own policy. */
interface SharedTiers {
  /** @param override of keys whose policy it is. */
  readonly make: (policy: Policy, override?: Override) => SharedLimiter
  /** Whether another process says what a policy of a name is: then all that `policyFor` returns under that name are this one. */
  readonly isKnownByName?: boolean
  readonly clock: Clock
  readonly policyFor: ((key: string) => Policy | undefined) | undefined
  readonly plans: Plans | undefined
  /** All policies that `policyFor` may return, if the option names them. */
  readonly policies: readonly Policy[] | undefined
  readonly overrides: OverrideCache | undefined
}

/** Of limiters over a store, where all policies have the same keys. */
export function tieredShared(
  own: SharedLimiter,
  ownAs: Policy,
  { make, isKnownByName, clock, policyFor, plans, policies, overrides }: SharedTiers,
): SharedLimiter {
  const tiers: { readonly policy: Policy; readonly counted: SharedLimiter }[] = []
  const contents = new Set([contentOf(ownAs)])
  try {
    for (const policy of policies ?? []) {
      if (!contents.has(contentOf(policy))) tiers.push({ policy, counted: make(policy) })
      contents.add(contentOf(policy))
    }
  } catch (error) {
    // The limiters already created have no owner that could close them.
    for (const limiter of [own, ...tiers.map(({ counted }) => counted)]) limiter.close()
    throw error
  }
  const planned = plans && new PlannedPolicies(plans, () => own.policy)
  const tiered = new TieredLimiter<Decision>({
    own,
    ownAs: [ownAs],
    tiers,
    policyFor,
    planFor: planned && ((key) => planned.of(key)),
    clock,
    make: policies === undefined ? make : undefined,
    known: isKnownByName && plans === undefined ? (policy, limiters) => ofName(policy, limiters) : undefined,
    overridden: overrides && { map: overrides, make: (override) => make(override.policy, override), restored: [] },
    sum: (limiters) => sumOf(limiters as unknown as readonly SharedLimiter[]),
    shards: (limiters, n = 10) => {
      const most = checkedTop(n)
      return mergedLoads(
        (limiters as unknown as readonly SharedLimiter[]).map((limiter) => limiter.shards(Number.MAX_SAFE_INTEGER)),
        most,
      )
    },
  })
  return tiered as unknown as SharedLimiter
}

/** @throws {PolicyError} `ALGORITHM_CHANGE` */
function ofName<Limiter extends { readonly policy: Policy }>(policy: Policy, limiters: readonly Limiter[]): Limiter | undefined {
  const known = limiters.find((each) => each.policy.name === policy.name)
  if (known !== undefined) checkChange(known.policy, policy)
  return known
}

function sumOf(limiters: readonly SharedLimiter[]): SharedStats {
  const [own] = limiters as readonly [SharedLimiter]
  const { nodes, share, region } = own.stats()
  const sum = { ...sumOfStats(limiters), nodes, share }
  return region === undefined ? sum : { ...sum, region: sumOfRegions(region, limiters) }
}
