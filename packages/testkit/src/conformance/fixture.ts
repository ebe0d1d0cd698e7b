import type { Duration, Limiter, LimiterOptions, ManualClock, Policy } from 'sluicegate'
import { manualClock } from 'sluicegate'
import { specOf } from '../kit.js'
import { CheckedLimiter } from './checked-limiter.js'
import { countTimers, type TimerCount } from './timer-count.js'

/** How the suite makes the limiters that it examines. The options are those of `createLimiter`; the clock is always given. */
export type MakeLimiter = (policy: Policy, options: LimiterOptions & { readonly clock: ManualClock }) => Limiter

/** A limiter under examination and the clock that it reads. */
export interface Fixture {
  readonly limiter: Limiter
  readonly clock: ManualClock
  /** The limiter beside its oracle: each call is made on both, and fails where they differ. */
  readonly checked: CheckedLimiter
  /** Timers that are set on the clock. */
  readonly timers: TimerCount
}

/** A fresh limiter on a fresh clock, which stands in September 2026 unless told otherwise. */
export type Fixtures = (policy: Policy, options?: Omit<LimiterOptions, 'clock'>, startMs?: number) => Fixture

/** In September 2026, 26:40 into an hour, 40 s into a minute. */
export const START_MS = 1_789_000_000_000
/** A log or a permit takes memory for each of its tokens: room for fewer keys than the default. */
const FEW_KEYS = 500

export function fixturesOf(make: MakeLimiter): Fixtures {
  return (policy, options = {}, startMs = START_MS) => {
    const clock = manualClock(startMs)
    const timers = countTimers(clock)
    const maxKeys = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra' ? {} : { maxKeys: FEW_KEYS }
    const limiter = make(policy, { ...maxKeys, ...options, clock })
    return { clock, timers, limiter, checked: new CheckedLimiter(limiter, specOf(policy), clock) }
  }
}

/** Makes a policy of one algorithm. */
export type MakePolicy = (options: { readonly limit: number; readonly window: Duration; readonly name?: string }) => Policy

/** How many entries of a table each key takes. */
export function entriesOf({ policies }: Policy): number {
  return policies?.length ?? 1
}

/** How many of `times` takes pass. */
export function admitted(limiter: Pick<Limiter, 'take'>, key: string, times: number, cost = 1): number {
  let passed = 0
  for (let i = 0; i < times; i++) if (limiter.take(key, cost).allowed) passed++
  return passed
}
