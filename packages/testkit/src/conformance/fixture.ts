import type { DecisionSource, Duration, Limiter, LimiterOptions, ManualClock, Policy } from 'sluicegate'
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

/** In what stores may differ. */
export interface StoreTraits {
  /** What its decisions say of where they were made. */
  readonly source: DecisionSource
  /** How far back its clock may step and it still answers as declared; what comes of longer steps is the store's affair. */
  readonly furthestBackMs: number
  /** How much of the long random runs is made, above 0 to 1: the whole of them is for a store that answers within microseconds. */
  readonly share: number
  /** Whether a key is carried over to another policy when it is next touched, and the policy stays known by its name. */
  readonly updatesLazily: boolean
}

export interface Fixtures {
  /** A fresh limiter on a fresh clock, which stands in September 2026 by default. */
  (policy: Policy, options?: Omit<LimiterOptions, 'clock'>, startMs?: number): Fixture
  readonly store: StoreTraits
}

/** In September 2026, 26:40 into an hour, 40 s into a minute. */
export const START_MS = 1_789_000_000_000
/** A log or a permit takes memory for each of its tokens: room for fewer keys than the default. */
const FEW_KEYS = 500

export function fixturesOf(make: MakeLimiter, store: StoreTraits): Fixtures {
  const fixture = (policy: Policy, options: Omit<LimiterOptions, 'clock'> = {}, startMs = START_MS): Fixture => {
    const clock = manualClock(startMs)
    const timers = countTimers(clock)
    const maxKeys = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra' ? {} : { maxKeys: FEW_KEYS }
    const limiter = make(policy, { ...maxKeys, ...options, clock })
    return { clock, timers, limiter, checked: new CheckedLimiter(limiter, specOf(policy), clock) }
  }
  return Object.assign(fixture, { store })
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
