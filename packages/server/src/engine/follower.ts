import type { Decision, Key } from 'sluicegate'
import type { ServedPolicy } from './served-policy.js'
import type { TakeAllOptions, TakePart } from './take-all.js'

/** A verb that changes a key without a decision. */
export type KeyChange = 'refund' | 'penalize' | 'block' | 'reset'

/** Sees what was decided, after it was decided. It cannot change an answer, and must not throw. */
export interface Follower {
  taken(served: ServedPolicy, key: Key, cost: number, decision: Decision): void
  /** A take of several policies, all or nothing, with the decision of each. */
  takenAll(parts: readonly TakePart[], decisions: readonly Decision[], options: TakeAllOptions): void
  /** `amount` is tokens, or the milliseconds of a block; 0 of a reset. */
  changed(served: ServedPolicy, change: KeyChange, key: Key, amount: number): void
}
