import { checkedBan } from '../ban-options.js'
import type { Decision } from '../decision/decision.js'
import { emptyPermit, type PermitOf } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import type { KeyList, Limiter, LimiterHandle, LimiterOptions } from '../limiter.js'
import { carryKey, holdsKey } from '../memory/carried-key.js'
import { invalidHandle } from '../memory/handle-check.js'
import { followKey } from '../memory/memory-holds.js'
import { invalidSnapshot, type Snapshot } from '../memory/snapshot/snapshot.js'
import { asGiven, checkBoolean, checkFunction } from '../options/option-checks.js'
import type { PolicyOfKey } from '../plan-options.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { sumOfStats } from '../sum-of-stats.js'
import { type Clock, preciseClock } from '../time/clock.js'
import { BanCounter } from './ban-counter.js'
import { BanningLimiter } from './banning-limiter.js'
import { type InnerLimiter, Layer } from './layer.js'
import { type ListedHandle, ListedLimiter, preparedKeyList, travelledKeyList } from './listed-limiter.js'
import { type Override, OverrideMap } from './override-map.js'
import { type ShadowHandle, ShadowLimiter } from './shadow-limiter.js'
import { checkTier, contentOf, isTier, MOST_TIERS, type Tier } from './tier-table.js'
import { areTiers, type TieredHandle, TieredLimiter, type TieredLimiterParts } from './tiered-limiter.js'
import { untieredSnapshot } from './tiered-snapshot.js'

// The layers that options add around a plain limiter, from the outside in: shadow, lists, bans, tiers. Without such options there is no layer.

type PostedLayers = Partial<ShadowHandle & ListedHandle & TieredHandle>
const POSTED: readonly string[] = ['shadow', 'allow', 'deny', 'tiers', 'ownAs'] satisfies (keyof PostedLayers)[]

/** The options that add layers. */
export interface LayerOptions extends Pick<LimiterOptions, 'policies' | 'overrides' | 'banAfter' | 'allow' | 'deny' | 'shadow' | 'clock'> {
  readonly policyFor?: PolicyOfKey | undefined
}

interface Outer extends Pick<LayerOptions, 'banAfter' | 'clock'> {
  readonly shadow?: boolean | undefined
  readonly allow?: KeyList | undefined
  readonly deny?: KeyList | undefined
}

/**
 * A new limiter for the policy `own`, made by `make`.
 *
 * @throws {PolicyError} before anything is made.
 */
export function layered(own: Policy, make: (policy: Policy) => Limiter, options: LayerOptions): Limiter {
  const outer = outerLayers(options)
  const policies = checkedPolicies(options, own)
  const { policyFor } = options
  const keepsOverrides = isKept(options.overrides)
  if (policyFor === undefined && !keepsOverrides) return outer(make(own))
  const plain = make(own)
  const overrides = keepsOverrides ? new OverrideMap(() => plain.policy) : undefined
  const plan = {
    ownAs: [own],
    now: policies ?? [],
    make,
    later: policies === undefined,
    policyFor,
    overrides,
    makeOverride: make,
    restored: [],
    clock: options.clock,
  }
  return withOverrides(outer(tiersAround(plain, plan)), overrides)
}

/**
 * The limiter of a handle, in the layers of the thread that made it. Options of this thread come first. Functions cannot be posted, so
 * they have to be given here.
 *
 * @throws {PolicyError} `OPTION_INVALID`, also when a function is missing.
 */
export function attachedLayers(handle: LimiterHandle, attach: (handle: LimiterHandle) => Limiter, options: LayerOptions): Limiter {
  const { shadow, allow, deny, tiers, ownAs = [] } = asGiven<PostedLayers>(handle ?? {}, POSTED)
  const outer = outerLayers({
    ...options,
    shadow: options.shadow ?? shadow,
    allow: travelledKeyList(options.allow, allow, 'allow'),
    deny: travelledKeyList(options.deny, deny, 'deny'),
  })
  const { policyFor } = options
  checkFunction('policyFor', policyFor, 'must be a function of a key that returns a policy or undefined')
  if (tiers === undefined) {
    if (policyFor === undefined) return outer(attach(handle))
    throw new PolicyError(
      'OPTION_INVALID',
      'policyFor',
      policyFor,
      'is for the handle of a limiter that was made with policyFor and policies',
    )
  }
  if (policyFor === undefined) {
    throw new PolicyError('OPTION_INVALID', 'policyFor', policyFor, 'is a function, which does not travel: pass it again')
  }
  if (!areTiers(tiers, ownAs)) throw invalidHandle(handle)
  const attached = tiers.map(({ policy, counted }) => ({ policy, counted: attach(counted) }))
  return outer(tieredInMemory({ own: attach(handle), ownAs, tiers: attached, policyFor, clock: options.clock ?? preciseClock() }))
}

/**
 * The limiter of a snapshot, each part of which `restore` brings back. A policy that `policies` names and the snapshot does not
 * know begins again, made by `make` like the limiter of the own policy; one that the snapshot knows and `policies` does not name is
 * dropped.
 *
 * @throws {PolicyError} `OPTION_INVALID`, also when `policyFor` is missing for a snapshot of several policies.
 */
export function restoredLayers(
  snapshot: Uint8Array,
  restore: (snapshot: Snapshot) => Limiter,
  make: (policy: Policy, like: Snapshot) => Limiter,
  options: LayerOptions,
): Limiter {
  const outer = outerLayers(options)
  const { policyFor } = options
  checkFunction('policyFor', policyFor, 'must be a function of a key that returns a policy or undefined')
  const keepsOverrides = isKept(options.overrides)
  const parts = untieredSnapshot(snapshot)
  if (policyFor === undefined && !keepsOverrides && parts.tiers.length > 0) {
    throw new PolicyError('OPTION_INVALID', 'policyFor', policyFor, 'is missing: the snapshot is of a limiter that had it')
  }
  const own = restore(parts.own)
  const policies = checkedPolicies(options, own.policy)
  if (policyFor === undefined && !keepsOverrides) return outer(own)
  const known = new Map(parts.tiers.map(({ policy, counted }) => [contentOf(policy), counted]))
  const fresh = (policy: Policy): Limiter => make(policy, parts.own)
  const restored = ({ policy, counted }: Tier<Snapshot>): Limiter => {
    const limiter = restore(counted)
    if (contentOf(limiter.policy) === contentOf(policy) && isTier(policy, own.policy)) return limiter
    throw invalidSnapshot('has a limiter of another policy than it names')
  }
  const again = (policy: Policy): Limiter => {
    const counted = known.get(contentOf(policy))
    return counted === undefined ? fresh(policy) : restored({ policy, counted })
  }
  // After an update the own policy may equal one of the others.
  const ownAs = [own.policy, ...parts.ownAs].filter((policy) => !known.has(contentOf(policy)))
  const now = policies ?? parts.tiers.map(({ policy }) => policy)
  const overrides = keepsOverrides ? new OverrideMap(() => own.policy) : undefined
  const overridden = keepsOverrides ? parts.overridden.map((tier) => ({ policy: tier.policy, counted: restored(tier) })) : []
  const later = policies === undefined
  const plan = { ownAs, now, make: again, later, policyFor, overrides, makeOverride: fresh, restored: overridden, clock: options.clock }
  return withOverrides(outer(tiersAround(own, plan)), overrides)
}

interface TierPlan {
  readonly ownAs: readonly Policy[]
  /** The policies whose limiters are made now. */
  readonly now: readonly Policy[]
  /** Whether limiters of other policies are made on first use. */
  readonly later: boolean
  readonly make: (policy: Policy) => Limiter
  readonly policyFor: PolicyOfKey | undefined
  readonly overrides: OverrideMap | undefined
  readonly makeOverride: (policy: Policy) => Limiter
  /** Limiters of override policies from the snapshot. */
  readonly restored: readonly Tier<Limiter>[]
  readonly clock: Clock | undefined
}

function tiersAround(own: Limiter, plan: TierPlan): Limiter {
  const { ownAs, now, later, make, policyFor, overrides, makeOverride, restored, clock = preciseClock() } = plan
  const contents = new Set(ownAs.map(contentOf))
  const tiers: Tier<Limiter>[] = []
  for (const policy of now) {
    const content = contentOf(policy)
    if (!contents.has(content)) tiers.push({ policy, counted: make(policy) })
    contents.add(content)
  }
  const overridden = overrides && { map: overrides, make: ({ policy }: Override) => makeOverride(policy), restored }
  return tieredInMemory({ own, ownAs, tiers, policyFor, clock, make: later ? make : undefined, overridden })
}

/** Of limiters in memory, where a key that has another policy takes along what it has spent. */
export function tieredInMemory(parts: Omit<TieredLimiterParts<Decision>, 'sum' | 'carry'>): Limiter {
  const carry = { holds: holdsKey, bring: carryKey, follow: followKey } as unknown as NonNullable<TieredLimiterParts<Decision>['carry']>
  const sum = (limiters: readonly object[]): object => sumOfStats(limiters as readonly Limiter[])
  return new TieredLimiter({ ...parts, sum, carry }) as unknown as Limiter
}

function withOverrides(limiter: Limiter, overrides: OverrideMap | undefined): Limiter {
  return overrides === undefined ? limiter : Object.assign(limiter, { overrides })
}

/** @throws {PolicyError} `OPTION_INVALID` */
function isKept(overrides: unknown): boolean {
  if (overrides === undefined || typeof overrides === 'boolean') return overrides === true
  throw new PolicyError('OPTION_INVALID', 'overrides', overrides, 'must be true or false')
}

/**
 * Checks the options of the outer layers now; the returned function wraps a limiter in them, in memory or over a store.
 *
 * @param permitOf of such a limiter.
 */
export function outerLayers({ shadow, allow, deny, banAfter, clock = preciseClock() }: Outer, permitOf: PermitOf = emptyPermit) {
  if (shadow !== undefined) checkBoolean('shadow', shadow)
  const ban = checkedBan(banAfter)
  const isListed = allow !== undefined || deny !== undefined
  const lists = { allow: preparedKeyList(allow, 'allow'), deny: preparedKeyList(deny, 'deny') }
  return <Limiter extends InnerLimiter>(tiered: Limiter): Limiter => {
    const banning = ban === undefined ? tiered : new BanningLimiter(tiered, new BanCounter(ban, clock), permitOf)
    const keys = tiered instanceof Layer || ban !== undefined ? undefined : tiered.policy.policies?.length
    const listed = isListed ? new ListedLimiter(banning, { keys, ...lists }, permitOf) : banning
    return (shadow ? new ShadowLimiter(listed, permitOf) : listed) as Limiter
  }
}

/** What `policies` names, or undefined when it was not given. */
export function checkedPolicies({ policyFor, policies }: LayerOptions, own: Policy): readonly Policy[] | undefined {
  checkFunction('policyFor', policyFor, 'must be a function of a key that returns a policy or undefined')
  if (policies === undefined) return undefined
  if (policyFor === undefined)
    throw new PolicyError('OPTION_INVALID', 'policies', policies, 'is for what policyFor returns, which is missing')
  if (!Array.isArray(policies) || policies.length > MOST_TIERS) {
    throw new PolicyError('OPTION_INVALID', 'policies', policies, `must be an array of at most ${MOST_TIERS} policies`)
  }
  return policies.map((policy, i) => {
    const checked = checkedPolicy(policy, `policies[${i}]`)
    checkTier(checked, own, `policies[${i}]`)
    return checked
  })
}
