import type { Decision } from 'sluicegate'
import type { Outcome } from './outcome.js'

/** One decision, without the key. */
export interface ObservedDecision {
  /** Undefined where the rate came with the call. */
  readonly policy: string | undefined
  readonly outcome: Outcome
  /** Undefined where it is not known. */
  readonly source: Decision['source'] | undefined
}

/** Receives decisions when they are made, within the call that they are made for. */
export interface DecisionObserver {
  decided(decision: ObservedDecision): void
  /** The outcome of several decisions together, where it is another than theirs. */
  verdict(isOver: boolean): void
}
