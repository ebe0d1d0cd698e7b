import type { RateSpec } from './emission.js'

// The numbers of a policy, without the library, as plain data: what oracles and sequences work on.

export interface RatePolicySpec extends RateSpec {
  readonly algorithm: 'token-bucket' | 'gcra'
}

/** The calendars that the oracle knows by itself. */
export interface CalendarSpec {
  readonly unit: 'day' | 'week' | 'month' | 'year'
  readonly timeZone: 'UTC' | 'Europe/Rome'
}

export interface FixedWindowSpec {
  readonly algorithm: 'fixed-window'
  readonly limit: number
  /** With a calendar not looked at. */
  readonly windowMs: number
  readonly calendar?: CalendarSpec
}

export interface SlidingWindowSpec {
  readonly algorithm: 'sliding-window'
  readonly limit: number
  readonly windowMs: number
  /** Counters of any width, as stores have them. */
  readonly isUnpacked?: boolean
}

export interface SlidingLogSpec {
  readonly algorithm: 'sliding-log'
  readonly limit: number
  readonly windowMs: number
  /** The declared rounding of stored times; default what {@link logTickUs} says. */
  readonly tickUs?: number
}

export interface ConcurrencySpec {
  readonly algorithm: 'concurrency'
  readonly limit: number
  /** The time to live of a permit. */
  readonly windowMs: number
}

/** A policy that is not made of others. */
export type SinglePolicySpec = RatePolicySpec | FixedWindowSpec | SlidingWindowSpec | SlidingLogSpec | ConcurrencySpec

export interface AllOfSpec {
  readonly algorithm: 'all-of'
  readonly parts: readonly SinglePolicySpec[]
}

export type PolicySpec = SinglePolicySpec | AllOfSpec

export type AlgorithmName = PolicySpec['algorithm']

export const ALGORITHM_NAMES: readonly AlgorithmName[] = [
  'token-bucket',
  'gcra',
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'concurrency',
  'all-of',
]

/** The most that one request can cost. */
export function mostCost(spec: PolicySpec): number {
  if (spec.algorithm === 'all-of') return Math.min(...spec.parts.map(mostCost))
  return 'burst' in spec ? spec.burst : spec.limit
}
