import { createLimiter, type Decision, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import type { Arrival } from './arrivals.js'

/** The algorithms that can be tried, by their names in configuration files. */
export const ALGORITHMS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const
type AlgorithmName = (typeof ALGORITHMS)[number]

/** The numbers of a policy as a form has them. */
export interface RatePolicy {
  readonly algorithm: AlgorithmName
  readonly limit: number
  /** As in `tokenBucket({ window })`: `10s`. */
  readonly window: string
  /** Of token bucket and GCRA alone. */
  readonly burst: number
}

export function hasBurst({ algorithm }: RatePolicy): boolean {
  return algorithm === 'token-bucket' || algorithm === 'gcra'
}

/** @throws {PolicyError} which says the option and what is wrong with it. */
export function policyOf(rate: RatePolicy): Policy {
  const { limit, burst } = rate
  const window = rate.window as '1s'
  switch (rate.algorithm) {
    case 'token-bucket':
      return tokenBucket({ limit, window, burst })
    case 'gcra':
      return gcra({ limit, window, burst })
    case 'fixed-window':
      return fixedWindow({ limit, window })
    case 'sliding-window':
      return slidingWindow({ limit, window })
    case 'sliding-log':
      return slidingLog({ limit, window })
  }
}

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

/** Every decision as a line, for a spreadsheet, and for the test that compares them with those of Node. */
export function decisionsCsv(arrivals: readonly Arrival[], decisions: readonly Decision[]): string {
  const lines = arrivals.map(({ atMs, key }, i) => {
    const { allowed, remaining, retryAfterMs, resetAfterMs } = decisions[i] as Decision
    return [atMs, `"${key.replaceAll('"', '""')}"`, allowed, remaining, retryAfterMs, resetAfterMs].join(',')
  })
  return `at_ms,key,allowed,remaining,retry_after_ms,reset_after_ms\n${lines.join('\n')}\n`
}
