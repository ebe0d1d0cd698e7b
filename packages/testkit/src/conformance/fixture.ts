import {
  gcra,
  type Limiter,
  type LimiterOptions,
  type ManualClock,
  manualClock,
  type Policy,
  type RateOptions,
  tokenBucket,
} from 'sluicegate'

/** How the suite makes the limiters that it examines. The options are those of `createLimiter`; the clock is always given. */
export type MakeLimiter = (policy: Policy, options: LimiterOptions & { readonly clock: ManualClock }) => Limiter

/** A limiter under examination and the clock that it reads. */
export interface Fixture {
  readonly limiter: Limiter
  readonly clock: ManualClock
}

/** A fresh limiter on a fresh clock, which stands in September 2026 unless told otherwise. */
export type Fixtures = (policy: Policy, options?: Omit<LimiterOptions, 'clock'>, startMs?: number) => Fixture

export function fixturesOf(make: MakeLimiter): Fixtures {
  return (policy, options = {}, startMs = 1_789_000_000_000) => {
    const clock = manualClock(startMs)
    return { clock, limiter: make(policy, { ...options, clock }) }
  }
}

/** Makes a policy of one algorithm. */
export type MakePolicy = (options: RateOptions) => Policy

/** The algorithms that the suite examines, each by its name. */
export const ALGORITHMS: readonly (readonly [string, MakePolicy])[] = [
  ['token bucket', tokenBucket],
  ['gcra', gcra],
]

/** How many of `times` takes pass. */
export function admitted(limiter: Limiter, key: string, times: number, cost = 1): number {
  let passed = 0
  for (let i = 0; i < times; i++) if (limiter.take(key, cost).allowed) passed++
  return passed
}
