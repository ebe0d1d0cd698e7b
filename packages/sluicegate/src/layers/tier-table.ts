import { checkedTop } from '../arguments.js'
import { type HotKeys, merged } from '../decision/hot-keys.js'
import { holdsPermits } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import { checkKey } from '../key.js'
import type { Key } from '../limiter.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'

/** The largest number of policies that one function may return. */
export const MOST_TIERS = 1_000

/** A policy other than the limiter's own, with its limiter, handle or snapshot. */
export interface Tier<Counted> {
  readonly policy: Policy
  readonly counted: Counted
}

/** What a {@link TierTable} is made of. */
export interface TierTableParts<Counted> {
  /** Makes the limiter of a policy that is not in the table yet; throws if the policy is refused. */
  readonly make: (policy: Policy) => Counted
  /** The option whose function returns policies, for messages. */
  readonly option: string
  /** The limiter of a policy that is not in the table, such as the own policy after an update. */
  readonly known?: (policy: Policy) => Counted | undefined
}

/**
 * The limiter of each of several policies. Equal policies share one, so a new policy object per call neither leaks nor starts with a new
 * budget.
 */
export class TierTable<Counted> {
  readonly tiers: Tier<Counted>[] = []
  private readonly parts: TierTableParts<Counted>
  /** By canonical text, so equal policies find the same limiter; and by identity, which is faster. */
  private readonly byContent = new Map<string, Counted>()
  private readonly byIdentity = new WeakMap<Policy, Counted>()

  constructor(parts: TierTableParts<Counted>) {
    this.parts = parts
  }

  /** Registers a limiter for a policy without adding a tier. */
  name(policy: Policy, counted: Counted): void {
    this.byContent.set(contentOf(policy), counted)
  }

  add(tier: Tier<Counted>): void {
    this.tiers.push(tier)
    this.name(tier.policy, tier.counted)
  }

  /**
   * What counts for a policy.
   *
   * @param isNamed whether only policies that are in the table already are allowed.
   * @throws {PolicyError} `POLICY_INVALID`
   */
  of(policy: Policy, isNamed: boolean): Counted {
    return this.byIdentity.get(policy) ?? this.found(policy, isNamed)
  }

  private found(policy: Policy, isNamed: boolean): Counted {
    const checked = checkedPolicy(policy, this.parts.option)
    const counted = this.byContent.get(contentOf(checked)) ?? this.known(checked) ?? this.made(checked, isNamed)
    // An object that is not frozen may change.
    if (Object.isFrozen(policy)) this.byIdentity.set(policy, counted)
    return counted
  }

  private known(policy: Policy): Counted | undefined {
    const counted = this.parts.known?.(policy)
    // Bounded, however often the own policy changes.
    if (counted !== undefined && this.byContent.size < 2 * MOST_TIERS) this.name(policy, counted)
    return counted
  }

  private made(policy: Policy, isNamed: boolean): Counted {
    const { make, option } = this.parts
    if (isNamed) {
      throw new PolicyError('POLICY_INVALID', option, policy, 'must return undefined or a policy that the option policies names')
    }
    if (this.tiers.length >= MOST_TIERS) {
      throw new PolicyError('POLICY_INVALID', option, policy, `must return at most ${MOST_TIERS} different policies`)
    }
    const counted = make(policy)
    this.add({ policy, counted })
    return counted
  }
}

/** The canonical text of a policy: equal for equal policies. */
export function contentOf(policy: Policy): string {
  return JSON.stringify(checkedPolicy(policy))
}

/**
 * Refuses a tier whose takes return another type than those of the limiter's own policy: permits or decisions.
 *
 * @throws {PolicyError} `POLICY_INVALID`
 */
export function checkTier(policy: Policy, own: Policy, option: string): void {
  if (isTier(policy, own)) return
  throw new PolicyError('POLICY_INVALID', option, policy, 'must answer with permits if and only if the own policy of the limiter does')
}

/** Whether takes of both policies return the same type. */
export function isTier(policy: Policy, own: Policy): boolean {
  return holdsPermits(policy) === holdsPermits(own)
}

/** The busiest keys of several limiters together. */
export function hotKeysOfAll(limiters: Iterable<{ hotKeys(n: number): HotKeys }>, n = 10): HotKeys {
  const most = checkedTop(n)
  const all = [...limiters].map((limiter) => limiter.hotKeys(Number.MAX_SAFE_INTEGER))
  const demand = merged(all.flatMap((one) => one.demand))
  const denials = merged(all.flatMap((one) => one.denials))
  return { demand: demand.slice(0, most), denials: denials.slice(0, most) }
}

/**
 * Several keys in one call would have one budget for each policy of theirs.
 *
 * @throws {PolicyError} `KEY_INVALID`
 */
export function checkTieredKey(key: Key): asserts key is string {
  if (typeof key !== 'object' || key === null) return checkKey(key)
  throw new PolicyError(
    'KEY_INVALID',
    'key',
    key,
    'must be one string with policyFor or overrides: for levels say policyFor: { LEVEL: (key) => policy }',
  )
}
