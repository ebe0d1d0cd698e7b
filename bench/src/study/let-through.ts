import { createLimiter, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'

/** What each policy of the same limit lets through of the same requests. */
export interface LetThroughFindings {
  readonly study: 'let-through'
  readonly limit: number
  readonly windowMs: number
  readonly lengthMs: number
  /** Milliseconds from the start of an aligned window, of every request. */
  readonly askedMs: readonly number[]
  readonly policies: readonly { readonly name: string; readonly admittedMs: readonly number[]; readonly mostInAnyWindow: number }[]
}

const LIMIT = 10
const WINDOW_MS = 10_000
const LENGTH_MS = 80_000
const START_MS = Date.UTC(2026, 0, 1)
const RATE = { limit: LIMIT, window: WINDOW_MS }
const POLICIES: readonly (readonly [string, Policy])[] = [
  ['token bucket', tokenBucket(RATE)],
  ['gcra, burst 1', gcra({ ...RATE, burst: 1 })],
  ['fixed window', fixedWindow(RATE)],
  ['sliding window', slidingWindow(RATE)],
  ['sliding log', slidingLog(RATE)],
]

/** A steady trickle, a burst around the end of a window, silence, and more than any limiter lets through until the end. */
function requests(): number[] {
  return [...every(1250, 0, 12_500), ...every(50, 29_000, 31_000), ...every(200, 43_000, LENGTH_MS)]
}

export function letThroughStudy(): LetThroughFindings {
  const askedMs = requests()
  const policies = POLICIES.map(([name, policy]) => {
    let nowMs = START_MS
    const limiter = createLimiter(policy, { maxKeys: 1, clock: { nowMs: () => nowMs } })
    const admittedMs = askedMs.filter((ms) => {
      nowMs = START_MS + ms
      return limiter.take('key').allowed
    })
    return { name, admittedMs, mostInAnyWindow: Math.max(...admittedMs.map((ms) => inWindow(admittedMs, ms))) }
  })
  return { study: 'let-through', limit: LIMIT, windowMs: WINDOW_MS, lengthMs: LENGTH_MS, askedMs, policies }
}

/** How many of these times lie in the window that ends at `ms`. */
export function inWindow(timesMs: readonly number[], ms: number): number {
  return timesMs.filter((at) => at > ms - WINDOW_MS && at <= ms).length
}

function every(stepMs: number, fromMs: number, toMs: number): number[] {
  return Array.from({ length: (toMs - fromMs) / stepMs }, (_, nth) => fromMs + nth * stepMs)
}
