import type { Decision, Limiter, ManualClock, Policy } from 'sluicegate'
import type { Examined } from '../conformance/algorithms.js'
import type { ConformanceChoice } from '../conformance.js'

/** What a fault may use beside the limiter that it spoils. */
export interface Spoiled {
  readonly clock: ManualClock
  /** Makes a right limiter of another policy, or on another clock. */
  make(policy: Policy, clock?: Pick<ManualClock, 'nowMs'>): Limiter
}

/** A fault that other limiters have had. */
export interface Fault {
  readonly algorithm: Examined['name']
  /** The shared parts of the suite to run, beside the algorithm's own. */
  readonly parts: NonNullable<ConformanceChoice['shared']>
  /** What it makes of a limiter. */
  readonly spoil: (limiter: Limiter, spoiled: Spoiled) => Partial<Limiter>
}

export function changed(decision: Decision, change: (decision: Decision) => Partial<Decision>): Decision {
  return { ...decision, ...change(decision) }
}
