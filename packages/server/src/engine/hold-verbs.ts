import type { Decision, Key } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { Cost } from './costs.js'
import type { ServedPolicy } from './served-policy.js'
import type { WorkAsked, WorkState } from './served-work.js'

/** The answer to `open`. */
export interface Opened extends WorkState {
  readonly decision: Decision
  /** For the next two; undefined when it may not begin. */
  readonly id: string | undefined
  /** Of work that was opened before: how long its hold lasts without a call. */
  readonly ttlMs?: number
}

/** The answer to `add`. Refused: `decision` is what denies it; undefined beyond `most`, or beyond the debt that it may make. */
export interface Added extends WorkState {
  readonly isAdded: boolean
  readonly decision?: Decision
}

/** The answer to `close`, with the state of the key as `peek(key, 1)`. */
export interface Closed extends WorkState {
  readonly decision: Decision
}

/** Why there is no answer. `passed`: a later call was answered before. */
export interface HoldFault {
  readonly fault: 'unknown' | 'closed' | 'passed'
}

/**
 * Work whose cost is known only afterwards, by an id that cannot be guessed. A call with the number of the last call receives the answer of that
 * again, and does nothing: a lost reply counts once. Calls of one hold have rising numbers; without numbers each counts.
 *
 * All of them throw, or reject with, `PolicyError`: the caller's mistake, which spends nothing, and `StoreError`: an outage.
 */
export interface HoldVerbs {
  /** @param floor tokens that it must leave. @throws {TooManyHeldError} */
  open(served: ServedPolicy, key: Key, asked: WorkAsked, floor: number): Awaitable<Opened | HoldFault>
  add(id: string, cost: Cost, call?: number): Awaitable<Added | HoldFault>
  /** @param cost the true cost of the whole; undefined: what was added counts. */
  close(id: string, cost?: Cost, call?: number): Awaitable<Closed | HoldFault>
}
