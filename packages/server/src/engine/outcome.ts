import type { Decision } from 'sluicegate'

/** The three different answers to a take. An outage is none of them: it is an error. */
export type Outcome = 'allowed' | 'denied' | 'impossible'

/** Which of the three a decision is: what can never pass is not the same as what may pass later. */
export function outcomeOf(decision: Decision): Outcome {
  if (decision.allowed) return 'allowed'
  return decision.retryAfterMs === Number.POSITIVE_INFINITY ? 'impossible' : 'denied'
}

/** What a take would have answered: a reservation has the state after it, which denies the next one when nothing is left. */
export function passed({ parts, ...decision }: Decision): Decision {
  return { ...decision, allowed: true, retryAfterMs: 0, ...(parts && { parts: parts.map(passed) }) }
}

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

/** Upper bounds in seconds: from a decision in cache to one that waited for a store until its timeout. */
export const LATENCY_BOUNDS_S = [
  2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.5,
] as const

/** How long decisions took, counted in fixed buckets: a few nanoseconds an observation, no allocation. */
export class Latency {
  /** Observations a bucket; the last one is for what is above every bound. */
  readonly buckets = new Float64Array(LATENCY_BOUNDS_S.length + 1)
  sumS = 0

  observe(seconds: number): void {
    let bucket = 0
    while (bucket < LATENCY_BOUNDS_S.length && seconds > (LATENCY_BOUNDS_S[bucket] as number)) bucket++
    this.buckets[bucket] = (this.buckets[bucket] as number) + 1
    this.sumS += seconds
  }

  get count(): number {
    return this.buckets.reduce((sum, observations) => sum + observations, 0)
  }
}
