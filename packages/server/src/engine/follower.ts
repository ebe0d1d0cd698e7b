import type { Decision, Key } from 'sluicegate'

/** A verb that changes a key without a decision. */
export type KeyChange = 'refund' | 'penalize' | 'block' | 'reset'

/** The policy that decided. */
interface Decider {
  readonly name: string
}

/** One of the takes that pass together or not at all; see `TakePart`. */
interface FollowedPart {
  readonly policy: Decider
  readonly key: Key
  readonly cost: number
}

/** Sees what was decided, after it was decided. It cannot change an answer, and must not throw. */
export interface Follower {
  taken(served: Decider, key: Key, cost: number, decision: Decision): void
  /** A take of several policies, all or nothing, with the decision of each. `passes` as in `TakeAllOptions`. */
  takenAll(
    parts: readonly FollowedPart[],
    decisions: readonly Decision[],
    options: { readonly passes?: (decisions: readonly Decision[]) => boolean },
  ): void
  /** `amount` is tokens, or the milliseconds of a block; 0 of a reset. */
  changed(served: Decider, change: KeyChange, key: Key, amount: number): void
}
