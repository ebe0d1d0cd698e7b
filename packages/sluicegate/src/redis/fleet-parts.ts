import { checkedPolicy } from '../checked-policy.js'
import type { Clock } from '../clock.js'
import { PolicyError } from '../errors.js'
import type { Authority } from '../lease/authority.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { Policy } from '../policy.js'
import { checkChange } from '../policy-change.js'
import type { CallGuard } from './call-guard.js'
import type { FleetOptions } from './fleet-options.js'
import type { FleetVerbs } from './fleet-verbs.js'
import { LeasedTakes } from './leased-takes.js'
import { Outage } from './outage.js'
import type { StoreLimiter, StoreLimiterParts } from './store-limiter.js'

/** Who holds the true state of a policy, and how it is asked: the two ports of a limiter, both behind one guard. */
export interface FleetPorts {
  readonly guard: CallGuard
  /** @param leaseUs the length of a lease of a policy, 0 where it is not leased. */
  verbsOf(policy: Policy, leaseUs: (policy: Policy) => number): FleetVerbs
  authorityOf(policy: Policy, leaseUs: number): Authority
}

/** How a limiter over ports goes about it. */
export interface FleetSettings extends Omit<FleetOptions, 'timeoutMs'> {
  readonly clock: Clock
  /** 0 where nothing is leased. */
  readonly horizonMs: number
}

/** What a limiter over ports is made of, for a policy and those that follow it. */
export function partsOver(
  ports: FleetPorts,
  policy: Policy,
  settings: FleetSettings,
  limiter: () => StoreLimiter,
  without = outageOf(policy, settings),
): StoreLimiterParts {
  const { guard } = ports
  const { clock, horizonMs, maxKeys = 100_000, hotKeys = 0, maxWaiters = 10_000 } = settings
  const lengthUs = (part: Policy): number => (horizonMs > 0 && whyNotLeased(part, horizonMs) === undefined ? leaseUsOf(horizonMs) : 0)
  const leaseUs = policy.algorithm === 'all-of' ? 0 : lengthUs(policy)
  const beyond = {
    take: (key: string, cost: number) => limiter().exactly(key, cost),
    isOut: (key: string) => guard.pausedMs(key) > 0,
    without: (key: string, cost: number) => without.take(key, cost, guard.pausedMs(key)),
  }
  const leases =
    leaseUs > 0 ? new LeasedTakes({ policy, authority: ports.authorityOf(policy, leaseUs), beyond, clock, horizonMs, maxKeys }) : undefined
  const remake = (changed: Policy): StoreLimiterParts => {
    const checked = checkedPolicy(changed)
    checkChanges(policy, checked)
    const next = partsOver(ports, named(checked, policy), settings, limiter, without)
    without.update(next.policy)
    return next
  }
  return {
    policy,
    store: guard,
    verbs: ports.verbsOf(policy, lengthUs),
    outage: without,
    leases,
    leaseUs,
    remake,
    clock,
    hotKeys,
    maxWaiters,
  }
}

/** @throws {PolicyError} `ALGORITHM_CHANGE`, of `allOf` also of any of its parts. */
function checkChanges(before: Policy, next: Policy): void {
  checkChange(before, next)
  const { policies = [] } = before
  if (policies.length !== (next.policies ?? []).length) {
    throw new PolicyError('ALGORITHM_CHANGE', 'policy', next.algorithm, `must stay allOf of ${policies.length} policies`)
  }
  for (const [i, part] of policies.entries()) checkChange(part, next.policies?.[i] as Policy)
}

/** A policy, and each of its parts, under the name by which what it follows on is known in the store. */
function named(policy: Policy, before: Policy): Policy {
  const { policies } = policy
  if (policies === undefined) return { ...policy, name: before.name }
  return { ...policy, name: before.name, policies: policies.map((part, i) => ({ ...part, name: before.policies?.[i]?.name ?? part.name })) }
}

function outageOf(policy: Policy, { outage = 'local', localShare = 0.1, clock }: FleetSettings): Outage {
  return new Outage(outage, policy, localShare, clock)
}
