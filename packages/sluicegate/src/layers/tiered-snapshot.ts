import { decodedSnapshot, encodedSnapshot, invalidSnapshot, type Snapshot } from '../memory/snapshot/snapshot.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { MOST_TIERS, type Tier } from './tier-table.js'

/** The parts of the snapshot of a tiered limiter. */
export interface TieredSnapshot<Counted> {
  readonly own: Counted
  /** Policies that stand for the own policy in `policyFor`. */
  readonly ownAs: readonly Policy[]
  readonly tiers: readonly Tier<Counted>[]
  /** What counts for policies of single keys. */
  readonly overridden?: readonly Tier<Counted>[]
}

/** Description of a snapshot whose contents are several: of the own policy, then one per tier, then one per override policy. */
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
