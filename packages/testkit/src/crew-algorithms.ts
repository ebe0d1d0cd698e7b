import type { Key } from 'sluicegate'
import type { PolicySpec, SinglePolicySpec } from './oracle/policy-spec.js'

/** An algorithm, in one of its forms, as the tests with worker threads run it. */
export interface CrewAlgorithm {
  readonly name: string
  /** What a take costs in these tests. */
  readonly cost: number
  /** Lets `takes` of that cost pass in a window, and no more at once. A form may take a shorter window, or one of the calendar. */
  readonly specOf: (takes: number, windowMs: number) => PolicySpec
  /** Who is limited, by name: with all-of perhaps a key each. */
  readonly keyOf: (name: string) => Key
}

/** Below it both counts of a sliding window no longer fit one word. */
const SHORT_MS = 200
const DAY_MS = 86_400_000
/** Takes the counts of a sliding window beyond 65,535. */
const WIDE_COST = 10_000

/** Every algorithm, in every form that counts differently. */
export const CREW_ALGORITHMS: readonly CrewAlgorithm[] = [
  single('token bucket', 1, (limit, windowMs) => ({ algorithm: 'token-bucket', limit, windowMs, burst: limit })),
  single('gcra', 1, (limit, windowMs) => ({ algorithm: 'gcra', limit, windowMs, burst: limit })),
  single('fixed window', 1, (limit, windowMs) => ({ algorithm: 'fixed-window', limit, windowMs })),
  single('fixed window of the calendar', 1, (limit) => ({
    algorithm: 'fixed-window',
    limit,
    windowMs: DAY_MS,
    calendar: { unit: 'day', timeZone: 'Europe/Rome' },
  })),
  single('sliding window, packed', 1, (limit, windowMs) => ({ algorithm: 'sliding-window', limit, windowMs })),
  single('sliding window, short', 1, (limit, windowMs) => ({
    algorithm: 'sliding-window',
    limit,
    windowMs: shorter(windowMs),
  })),
  single('sliding window, wide', WIDE_COST, (limit, windowMs) => ({ algorithm: 'sliding-window', limit, windowMs })),
  single('sliding log', 3, (limit, windowMs) => ({ algorithm: 'sliding-log', limit, windowMs })),
  single('concurrency', 2, (limit, windowMs) => ({ algorithm: 'concurrency', limit, windowMs })),
  { name: 'all-of, one key', cost: 1, specOf: several, keyOf: (name) => name },
  { name: 'all-of, a key each', cost: 1, specOf: several, keyOf: (name) => [name, `${name}, too`, `the third ${name}`] },
]

/** The window of a policy, of several the longest. */
export function windowMsOf(spec: PolicySpec): number {
  return spec.algorithm === 'all-of' ? Math.max(...spec.parts.map(windowMsOf)) : spec.windowMs
}

/** Other windows are other windows still. */
function shorter(windowMs: number): number {
  return Math.round(((SHORT_MS * windowMs) / (windowMs + 1000)) * 1000) / 1000
}

function single(name: string, cost: number, specOf: (limit: number, windowMs: number) => SinglePolicySpec): CrewAlgorithm {
  return { name, cost, specOf: (takes, windowMs) => specOf(takes * cost, windowMs), keyOf: (key) => key }
}

/** A word, a log with a ring and a permit: all that can change together. */
function several(limit: number, windowMs: number): PolicySpec {
  return {
    algorithm: 'all-of',
    parts: [
      { algorithm: 'token-bucket', limit, windowMs, burst: limit },
      { algorithm: 'sliding-log', limit, windowMs },
      { algorithm: 'concurrency', limit, windowMs },
    ],
  }
}
