import { type Key, type KeysByName, keysOf } from '../../key.js'
import { MOST_PLANS, type Plans, planFor, planUnder } from '../../plan-options.js'
import { allOf } from '../../policy/all-of.js'
import type { Policy } from '../../policy/policy.js'

/**
 * The policies of calls whose levels have plans. A plan has the name of its level, and so its account in the store: a key that changes its plan
 * keeps what it has spent, and a key that several calls have in common, such as that of an organisation, has one budget.
 */
export class PlannedPolicies {
  private readonly plans: Plans
  private readonly own: () => Policy
  /** Of {@link byParts}: the policy that was in force. */
  private ownThen: Policy | undefined
  private readonly byParts = new Map<string, Policy>()
  private readonly numbers = new WeakMap<Policy, number>()
  private numbered = 0

  constructor(plans: Plans, own: () => Policy) {
    this.plans = plans
    this.own = own
  }

  /** Undefined: that of the limiter. @throws {PolicyError} `KEY_INVALID`, `POLICY_INVALID` */
  of(key: Key | KeysByName): Policy | undefined {
    const own = this.own()
    const levels = own.policies as readonly Policy[]
    const keys = keysOf(own, key)
    const parts = levels.map((level, i) => planFor(this.plans, level, keys[i] as string) ?? level)
    return parts.some((part, i) => part !== levels[i]) ? this.whole(own, levels, parts) : undefined
  }

  private whole(own: Policy, levels: readonly Policy[], parts: readonly Policy[]): Policy {
    if (this.ownThen !== own || this.byParts.size >= MOST_PLANS) this.byParts.clear()
    this.ownThen = own
    // What is not frozen may change.
    const id = parts.every((part) => Object.isFrozen(part)) ? parts.map((part) => this.numberOf(part)).join() : undefined
    const known = id === undefined ? undefined : this.byParts.get(id)
    if (known !== undefined) return known
    const named = parts.map((part, i) => planUnder(levels[i] as Policy, part))
    const policy = allOf(named, { name: own.name })
    if (id !== undefined) this.byParts.set(id, policy)
    return policy
  }

  private numberOf(policy: Policy): number {
    const number = this.numbers.get(policy) ?? ++this.numbered
    this.numbers.set(policy, number)
    return number
  }
}
