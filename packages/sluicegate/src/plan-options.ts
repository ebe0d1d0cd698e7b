import { ignore } from './awaitable.js'
import { PolicyError } from './errors.js'
import { checkFunction } from './options/option-checks.js'
import { checkedPolicy } from './policy/checked-policy.js'
import { changedPolicy, type Policy } from './policy/policy.js'

/** Combinations of policies of one limiter over a store; in memory policies beside those of the levels. */
export const MOST_PLANS = 1_000

/** Another policy for some keys; undefined: the limiter's own. */
export type PolicyOfKey = (key: string) => Policy | undefined
/** The same for some keys of a level, by the level's name. */
export type Plans = Readonly<Record<string, PolicyOfKey>>

const NO_FUNCTION = 'must be a function of a key that returns a policy or undefined'

/** The function of single keys among the forms of `policyFor`. @throws {PolicyError} `OPTION_INVALID` for what is neither form. */
export function policyOfKey(policyFor: PolicyOfKey | Plans | undefined): PolicyOfKey | undefined {
  if (typeof policyFor === 'object' && policyFor !== null) return undefined
  checkFunction('policyFor', policyFor, NO_FUNCTION)
  return policyFor
}

/** What a function of plans says of a key that keeps the plan that it has. */
export const SAME_PLAN = Symbol.for('sluicegate same plan')

/** Another policy for a key of a level; undefined: the level's own policy. */
export type PlanFor = (level: Policy, key: string) => Policy | typeof SAME_PLAN | undefined

interface BesidePlans {
  readonly policyFor?: unknown
  readonly policies?: unknown
  readonly overrides?: unknown
  readonly banAfter?: unknown
}

/** `policyFor` of levels. @throws {PolicyError} `OPTION_INVALID` */
export function checkedPlans({ policyFor, ...options }: BesidePlans, own: Policy): Plans | undefined {
  if (typeof policyFor !== 'object' || policyFor === null) return undefined
  const levels = own.policies?.map(({ name }) => name)
  if (levels === undefined) {
    throw new PolicyError('OPTION_INVALID', 'policyFor', policyFor, `${NO_FUNCTION}: functions by level are for levels({ ... })`)
  }
  if (Array.isArray(policyFor) || policyFor instanceof Map) {
    throw new PolicyError('OPTION_INVALID', 'policyFor', policyFor, `must be functions by level, such as { ${levels[0]}: (key) => plan }`)
  }
  for (const [level, plan] of Object.entries(policyFor)) {
    if (!levels.includes(level)) throw new PolicyError('OPTION_INVALID', `policyFor.${level}`, plan, `must be one of ${levels.join(', ')}`)
    checkFunction(`policyFor.${level}`, plan ?? null, NO_FUNCTION)
  }
  for (const option of ['policies', 'overrides', 'banAfter'] as const) {
    const value = options[option]
    if (value === undefined || value === false) continue
    throw new PolicyError('OPTION_INVALID', option, value, 'is for single keys: leave it out beside policyFor of levels')
  }
  return policyFor as Plans
}

/** @throws {PolicyError} `OPTION_INVALID` for a level of permits, which in memory belong to the policy that gave them. */
export function requireNoPermitPlans(plans: Plans, own: Policy): void {
  const level = own.policies?.find(({ algorithm, name }) => algorithm === 'concurrency' && Object.hasOwn(plans, name))
  if (level === undefined) return
  const mend = 'is of concurrency, whose permits in memory stay under the policy that gave them: give store, too'
  throw new PolicyError('OPTION_INVALID', `policyFor.${level.name}`, plans[level.name], mend)
}

/** What the function of a level says of a key, unchecked; undefined: the level's own policy. */
export function planFor(plans: Plans, { name }: Policy, key: string): Policy | undefined {
  const plan = Object.hasOwn(plans, name) ? plans[name]?.(key) : undefined
  ignore(plan)
  return plan
}

/**
 * A plan under the name of its level, which is that of its account.
 *
 * @throws {PolicyError} `POLICY_INVALID`
 */
export function planUnder(level: Policy, given: Policy): Policy {
  if (given === level) return level
  const option = `policyFor.${level.name}`
  const plan = checkedPolicy(given, option)
  if (plan.algorithm === level.algorithm) return changedPolicy(plan, { name: level.name })
  throw new PolicyError('POLICY_INVALID', option, given, `must return ${level.algorithm}, as its level, or undefined`)
}
