import { type Clock, tickerOf } from '../clock.js'
import { PolicyError } from '../errors.js'
import type { Authority } from '../lease/authority.js'
import { LeaseTable } from '../lease/lease-table.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import { checkChange } from '../policy/policy-change.js'
import type { Beyond } from './beyond-leases.js'
import type { CallGuard } from './call-guard.js'
import type { FleetOptions } from './fleet-options.js'
import type { FleetVerbs } from './fleet-verbs.js'
import type { LateAnswers } from './late-answers.js'
import { LeasedAllOf } from './leased-all-of.js'
import { type LeasedTakes, SingleLeasedTakes } from './leased-takes.js'
import { Outage } from './outage.js'
import type { StoreLimiter, StoreLimiterParts } from './store-limiter.js'

/** Who holds the true state of a policy, and how it is asked: the two ports of a limiter, both behind one guard. */
export interface FleetPorts {
  readonly guard: CallGuard
  readonly late: LateAnswers
  /** Whether one call can charge keys together. */
  isTogether(keys: readonly string[]): boolean
  /**
   * @param leaseUs the length of a lease of a policy, 0 where it is not leased.
   * @param leases what takes of it, undefined where it is not leased as a whole.
   */
  verbsOf(policy: Policy, leaseUs: (policy: Policy) => number, leases: LeasedTakes | undefined): FleetVerbs
  /** Who hands out tokens of a policy: of `allOf` for each of its parts. */
  authoritiesOf(policy: Policy, leaseUs: number): readonly Authority[]
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
  const policies = policy.policies ?? [policy]
  // Of several policies all are leased, or none.
  const leaseUs = Math.min(...policies.map(lengthUs))
  const ticker = tickerOf(clock)
  const answered = (isLate: boolean): void => ports.late.answered(isLate, ticker.read(), leaseUs)
  const beyond: Beyond = {
    take: (key, cost) => limiter().calls.take(key, cost),
    peek: (key, cost) => limiter().calls.peek(key, cost),
    isTogether: (keys) => ports.isTogether(keys),
    isOut: (key) => guard.pausedMs(key) > 0,
    answered,
    without: (key, cost) => limiter().calls.without(key, cost),
  }
  const charged = (tokens: number): void => {
    guard.counts.charged += tokens / policies.length
  }
  const leasesOf = (): LeasedTakes => {
    const authorities = ports.authoritiesOf(policy, leaseUs)
    const tables = policies.map(
      (part, i) => new LeaseTable({ policy: part, authority: authorities[i] as Authority, clock, horizonMs, maxKeys, charged, answered }),
    )
    if (policy.policies === undefined) return new SingleLeasedTakes(tables[0] as LeaseTable, beyond, clock)
    return new LeasedAllOf(policy, tables, beyond, clock)
  }
  const leases = leaseUs > 0 ? leasesOf() : undefined
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
    late: ports.late,
    verbs: ports.verbsOf(policy, lengthUs, leases),
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
  if (policies === undefined) return changedPolicy(policy, { name: before.name })
  return changedPolicy(policy, {
    name: before.name,
    policies: policies.map((part, i) => changedPolicy(part, { name: before.policies?.[i]?.name ?? part.name })),
  })
}

function outageOf(policy: Policy, { outage = 'local', localShare = 0.1, clock }: FleetSettings): Outage {
  return new Outage(outage, policy, localShare, clock)
}
