import type { Vector, VectorStep } from './vector.js'

// Times of vectors, in microseconds.

export const SECOND = 1_000_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
export const YEAR = 365 * DAY + 6 * HOUR
/** In September 2026, and no round number of anything. */
export const NOW = 1_789_000_000_123_457
/** The first microsecond of that UTC day. */
export const DAWN = NOW - (NOW % DAY)

export function script(name: string, policy: Vector['policy'], steps: readonly (readonly VectorStep[])[]): Vector {
  return { name, policy, steps: steps.flat() }
}

type Untimed<Step> = Step extends unknown ? Omit<Step, 'atUs'> : never

/** What is asked at one time. */
export function at(atUs: number, ...steps: readonly Untimed<VectorStep>[]): readonly VectorStep[] {
  return steps.map((step) => ({ atUs, ...step }))
}
