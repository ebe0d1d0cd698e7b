import { PolicyError } from '../errors.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import { checkChange } from '../policy/checked-policy.js'
import { pairedPolicies } from '../policy/paired-policies.js'
import { changedPolicy, type Policy, policiesOf } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import { type Clock, tickerOf } from '../time/clock.js'
import type { Backend } from './backend.js'
import type { CallGuard } from './calls/call-guard.js'
import type { CrossSlotBackend } from './calls/cross-slot-backend.js'
import { GuardedBackend } from './calls/guarded-backend.js'
import { FallbackBackend } from './outage/fallback-backend.js'
import type { Outage } from './outage/outage.js'
import type { LateAnswers } from './takes/late-answers.js'
import { LeaseTable } from './takes/lease-table.js'
import { LeasedAllOf } from './takes/leased-all-of.js'
import { type LeasedTakes, SingleLeasedTakes } from './takes/leased-takes.js'

/** The length of a lease of a policy, or of a policy of `allOf`, in microseconds; 0 where it is not leased. */
export type LeaseLength = (policy: Policy) => number

/**
 * Makes the backend of a policy, without timeouts.
 *
 * @param lengthOf the lease of each of its policies.
 * @param names of its accounts, default {@link storedNames}: one policy of several does not know the whole.
 */
export type Connect = (policy: Policy, lengthOf: LeaseLength, names?: readonly string[]) => Backend

/** What a shared limiter keeps under every policy. */
export interface SharedBase {
  readonly connect: Connect
  /** Of a backend with hash slots. */
  readonly crossSlot?: typeof CrossSlotBackend | undefined
  readonly guard: CallGuard
  readonly outage: Outage
  readonly late: LateAnswers
  readonly clock: Clock
  readonly maxKeys: number
  /** Whether a policy is leased; default: where it can be. */
  readonly isLeased?: ((policy: Policy) => boolean) | undefined
}

/** What decides under one policy: its backend in decorators, from the inside out. */
export interface UnderPolicy {
  readonly policy: Policy
  readonly guard: CallGuard
  readonly outage: Outage
  /** With timeouts, the circuit breaker, and `allOf` over hash slots. Rejects in an outage. */
  readonly backend: Backend
  /** The same, and decides takes, peeks and reservations in an outage. */
  readonly fallback: FallbackBackend
  /** In front of it; undefined where nothing is leased. */
  readonly leases: LeasedTakes | undefined
  /** The length of a lease, 0 where nothing is leased. */
  readonly leaseUs: number
}

/** The policy that is in force, with what decides under it. */
export class PolicyInForce {
  now: UnderPolicy
  /** Grows with each change of the numbers: what was charged before it may have been forgiven, and does not come back. */
  generation = 0
  private readonly base: SharedBase

  /** @param horizonMs how far ahead tokens are leased; 0 for not at all. */
  constructor(base: SharedBase, policy: Policy, horizonMs: number) {
    this.base = base
    this.now = under(policy, base, this, horizonMs)
  }

  get policy(): Policy {
    return this.now.policy
  }

  get fallback(): FallbackBackend {
    return this.now.fallback
  }

  /** Tokens leased under the policy before go back at once: no take spends them. */
  change(policy: Policy, horizonMs: number): void {
    const next = under(policy, this.base, this, horizonMs)
    if (hasOtherNumbers(policy, this.policy)) this.generation++
    this.base.outage.update(policy)
    this.now.leases?.close()
    this.now = next
  }
}

/** Whether two policies differ at the backend by more than their names. */
export function hasOtherNumbers(policy: Policy, before: Policy): boolean {
  return numbersOf(policy) !== numbersOf(before)
}

function numbersOf({ name, ...numbers }: Policy): string {
  return JSON.stringify({ ...numbers, policies: numbers.policies?.map(numbersOf) })
}

function under(policy: Policy, base: SharedBase, inForce: PolicyInForce, horizonMs: number): UnderPolicy {
  const { connect, crossSlot: CrossSlot, guard, outage } = base
  const policies = policiesOf(policy)
  const canLease = base.isLeased?.(policy) ?? true
  const lengthOf: LeaseLength = (part) =>
    canLease && horizonMs > 0 && whyNotLeased(part, horizonMs) === undefined ? leaseUsOf(horizonMs) : 0
  // Of several policies all are leased, or none.
  const leaseUs = Math.min(...policies.map(lengthOf))
  const guardedOf = (each: Policy, names: readonly string[]): Backend => new GuardedBackend(connect(each, lengthOf, names), guard, each)
  const names = storedNames(policy)
  const guarded = guardedOf(policy, names)
  const leases = leaseUs > 0 ? leasesOver(guarded, base, inForce, policy, horizonMs) : undefined
  const isSplit = CrossSlot !== undefined && leases !== undefined && policy.policies !== undefined
  const backend = isSplit
    ? new CrossSlot(
        guarded,
        policies.map((each, i) => guardedOf(each, names.slice(i, i + 1))),
        leases,
        guard,
      )
    : guarded
  const fallback = new FallbackBackend(backend, outage, guard)
  return { policy, guard, outage, backend, fallback, leases, leaseUs }
}

function leasesOver(backend: Backend, base: SharedBase, inForce: PolicyInForce, policy: Policy, horizonMs: number): LeasedTakes {
  const { guard, late, clock, maxKeys } = base
  const policies = policiesOf(policy)
  const leaseUs = leaseUsOf(horizonMs)
  const ticker = tickerOf(clock)
  const answered = (isLate: boolean): void => late.answered(isLate, ticker.read(), leaseUs)
  const charged = (tokens: number): void => {
    guard.counts.charged += tokens / policies.length
  }
  const tables = policies.map((each, part) => new LeaseTable({ policy: each, backend, part, clock, horizonMs, maxKeys, charged, answered }))
  const parts = { inForce, guard, clock }
  return policy.policies === undefined ? new SingleLeasedTakes(tables[0] as LeaseTable, parts) : new LeasedAllOf(tables, parts)
}

/**
 * The policy `next` under the names by which the backend knows `before`. Policies of `allOf` in another order keep their names, see {@link pairedPolicies}.
 *
 * @throws {PolicyError} `ALGORITHM_CHANGE`, of `allOf` also of any of its policies.
 */
export function policyAfter(before: Policy, next: Policy): Policy {
  checkChange(before, next)
  const { policies = [] } = before
  if (policies.length !== (next.policies ?? []).length) {
    throw new PolicyError('ALGORITHM_CHANGE', 'policy', next.algorithm, `must stay allOf of ${policies.length} policies`)
  }
  const was = pairedPolicies(policies, next.policies ?? [], true).map((at) => policies[at as number] as Policy)
  for (const [i, part] of was.entries()) checkChange(part, next.policies?.[i] as Policy)
  if (next.policies === undefined) return changedPolicy(next, { name: before.name })
  return changedPolicy(next, {
    name: before.name,
    policies: next.policies.map((part, i) => changedPolicy(part, { name: was[i]?.name ?? part.name })),
  })
}
