import { ignore } from '../../awaitable.js'
import { PolicyError } from '../../errors.js'
import { type Key, type KeysByName, keysOf } from '../../key.js'
import { MOST_TIERS } from '../../layers/tier-table.js'
import { allOf } from '../../policy/all-of.js'
import { checkedPolicy } from '../../policy/checked-policy.js'
import { changedPolicy, type Policy } from '../../policy/policy.js'

/** Another policy for some keys of a level, by the level's name. */
export type Plans = Readonly<Record<string, (key: string) => Policy | undefined>>

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkPlans(plans: unknown, own: Policy): asserts plans is Plans {
  const levels = own.policies?.map(({ name }) => name)
  if (levels === undefined) throw new PolicyError('OPTION_INVALID', 'plans', plans, 'are for levels({ ... }): of one policy say policyFor')
  if (typeof plans !== 'object' || plans === null || Array.isArray(plans)) {
    throw new PolicyError('OPTION_INVALID', 'plans', plans, `must be functions by level, such as { ${levels[0]}: (key) => plan }`)
  }
  for (const [level, plan] of Object.entries(plans)) {
    if (!levels.includes(level)) throw new PolicyError('OPTION_INVALID', `plans.${level}`, plan, `must be one of ${levels.join(', ')}`)
    if (typeof plan === 'function') continue
    throw new PolicyError('OPTION_INVALID', `plans.${level}`, plan, 'must be a function of a key that returns a policy or undefined')
  }
}

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
    let isPlanned = false
    const parts = levels.map((level, i) => {
      const plan = Object.hasOwn(this.plans, level.name) ? this.plans[level.name]?.(keys[i] as string) : undefined
      if (plan === undefined) return level
      ignore(plan)
      isPlanned = true
      return plan
    })
    return isPlanned ? this.whole(own, levels, parts) : undefined
  }

  private whole(own: Policy, levels: readonly Policy[], parts: readonly Policy[]): Policy {
    if (this.ownThen !== own || this.byParts.size >= MOST_TIERS) this.byParts.clear()
    this.ownThen = own
    // What is not frozen may change.
    const id = parts.every((part) => Object.isFrozen(part)) ? parts.map((part) => this.numberOf(part)).join() : undefined
    const known = id === undefined ? undefined : this.byParts.get(id)
    if (known !== undefined) return known
    const named = parts.map((part, i) => planOf(levels[i] as Policy, part))
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

/** @throws {PolicyError} `POLICY_INVALID` */
function planOf(level: Policy, part: Policy): Policy {
  if (part === level) return level
  const option = `plans.${level.name}`
  const plan = checkedPolicy(part, option)
  if (plan.algorithm === level.algorithm) return changedPolicy(plan, { name: level.name })
  throw new PolicyError('POLICY_INVALID', option, part, `must return ${level.algorithm}, as its level, or undefined`)
}
