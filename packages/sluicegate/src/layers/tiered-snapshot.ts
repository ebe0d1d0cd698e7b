import { invalidSnapshot, decodedSnapshot, type Snapshot, encodedSnapshot } from '../memory/snapshot/snapshot.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { MOST_TIERS } from './tier-table.js'

/** A policy other than the limiter's own, with what counts for it: a limiter, a handle or a snapshot. */
export interface Tier<Counted> {
  readonly policy: Policy
  readonly counted: Counted
}

/** The snapshots of a tiered limiter, apart. */
export interface TieredSnapshot<Counted> {
  readonly own: Counted
  /** What `policyFor` may call the own policy by. */
  readonly ownAs: readonly Policy[]
  readonly tiers: readonly Tier<Counted>[]
  /** What counts for policies of single keys. */
  readonly overridden?: readonly Tier<Counted>[]
}

/** What is said of contents that are several snapshots: that of the limiter's own policy, then one a tier, then one a policy of overrides. */
interface TieredDescription {
  readonly ownAs: readonly Policy[]
  readonly tiers: readonly Policy[]
  readonly overridden: readonly Policy[]
  readonly lengths: readonly number[]
}

/** The snapshots as one. */
export function tieredSnapshot({ own, ownAs, tiers, overridden = [] }: TieredSnapshot<Uint8Array>): Uint8Array {
  const parts = [own, ...[...tiers, ...overridden].map(({ counted }) => counted)]
  const description: TieredDescription = {
    ownAs,
    tiers: tiers.map(({ policy }) => policy),
    overridden: overridden.map(({ policy }) => policy),
    lengths: parts.map(({ length }) => length),
  }
  return encodedSnapshot(description, parts)
}

/**
 * The snapshots apart; of a limiter without tiers it is its own. Views into the bytes.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID` when something is missing, too much or damaged.
 */
export function untieredSnapshot(bytes: unknown): Required<TieredSnapshot<Snapshot>> {
  const snapshot = decodedSnapshot(bytes)
  const { ownAs, tiers, overridden = [], lengths } = snapshot.description as Partial<TieredDescription>
  if (tiers === undefined) return { own: snapshot, ownAs: [], tiers: [], overridden: [] }
  const ofKeys = checkedPolicies(overridden)
  const policies = [...checkedPolicies(tiers), ...ofKeys]
  const [own, ...counted] = partsOf(snapshot.contents, lengths).map(decodedSnapshot)
  if (own === undefined || counted.length !== policies.length) throw invalidSnapshot('does not hold what it says')
  const apart = policies.map((policy, i) => ({ policy, counted: counted[i] as Snapshot }))
  const count = policies.length - ofKeys.length
  return { own, ownAs: checkedPolicies(ownAs), tiers: apart.slice(0, count), overridden: apart.slice(count) }
}

function partsOf(contents: Uint8Array, lengths: unknown): Uint8Array[] {
  let at = 0
  const parts = (Array.isArray(lengths) ? lengths : []).map((length) => {
    const from = at
    at += Number.isInteger(length) && length >= 0 ? length : Number.POSITIVE_INFINITY
    return contents.subarray(from, at)
  })
  if (at !== contents.length) throw invalidSnapshot('does not hold what it says')
  return parts
}

function checkedPolicies(policies: unknown): readonly Policy[] {
  if (!Array.isArray(policies) || policies.length > MOST_TIERS) throw invalidSnapshot(`names no policies, or more than ${MOST_TIERS}`)
  try {
    // Spread, because `map` passes over holes.
    return [...policies].map((policy) => checkedPolicy(policy, 'snapshot'))
  } catch {
    throw invalidSnapshot('names something that is no policy')
  }
}
