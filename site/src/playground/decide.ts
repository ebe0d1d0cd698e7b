import { createLimiter, type Decision } from 'sluicegate'
import type { Arrival } from './arrivals.js'
import { policyOf, type RatePolicy } from './rate-policy.js'

/** What a policy did with arrivals. */
export interface Outcome {
  readonly decisions: readonly Decision[]
  /** Tokens left of the key of the first arrival, at `samples` times evenly over the whole length, first and last included. */
  readonly left: readonly number[]
}

/** Decides all arrivals with the library, on a clock that stands at each of their times. */
export function decide(rate: RatePolicy, arrivals: readonly Arrival[], seconds: number, samples = 241): Outcome {
  // Not manualClock(): it is shared with threads, and pages that are not isolated from other sites cannot make such a clock.
  let nowMs = 0
  const clock = { nowMs: () => nowMs }
  using limiter = createLimiter(policyOf(rate), { clock, maxKeys: Math.max(64, new Set(arrivals.map(({ key }) => key)).size) })
  const first = arrivals[0]?.key ?? 'you'
  const decisions: Decision[] = []
  const left: number[] = []
  const endMs = seconds * 1000
  const look = (untilMs: number): void => {
    for (
      let ms = (left.length * endMs) / (samples - 1);
      left.length < samples && ms < untilMs;
      ms = (left.length * endMs) / (samples - 1)
    ) {
      nowMs = ms
      left.push(limiter.peek(first).remaining)
    }
  }
  for (const { atMs, key } of arrivals) {
    look(atMs)
    nowMs = atMs
    decisions.push(limiter.take(key))
  }
  look(Number.POSITIVE_INFINITY)
  return { decisions, left }
}
