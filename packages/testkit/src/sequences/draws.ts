import type { OracleKey, PolicySpec } from '../oracle/oracle.js'
import type { Random } from '../random.js'

// What random sequences draw from.

export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS
export const YEAR_MS = 365.25 * DAY_MS
/** Readings stay where a double of milliseconds still tells every microsecond. */
export const LAST_MS = 2 ** 41
/** A table for eight keys has room for these, each with a block. */
export const MOST_KEYS = 4
export const MOST_ENDS = 3
export const WINDOWS_MS = [
  1,
  1.001,
  1.999,
  2,
  7,
  10,
  16.667,
  100,
  997,
  1000,
  1001,
  10_000,
  60_000,
  3_600_000,
  DAY_MS,
  7 * DAY_MS,
  30 * DAY_MS,
  366 * DAY_MS,
]
export const LIMITS = [
  1, 2, 3, 7, 10, 11, 60, 97, 100, 999, 1000, 1009, 9973, 10_000, 65_537, 999_983, 1_000_000, 15_485_863, 999_999_937, 1_000_000_000,
]

/** Edges of what integers and words hold, and what budgets of money are. */
export const LARGE_LIMITS = [
  1_000_000_000,
  1_000_000_001,
  1_561_806_289,
  1_561_806_290,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  50_000_000_000,
  799_644_820_200,
  1e12,
  2 ** 40 + 1,
  750_599_937_895_082,
  818_836_295_885_544,
  818_836_295_885_545,
  1e15,
  2 ** 52,
  2 ** 53 - 2,
  2 ** 53 - 1,
]
/** From this seed on, sequences have limits up to 2^53 - 1. */
export const LARGE_SEEDS = 1_000_000_000

/** A limit, up to `most`. */
export function randomLimit(random: Random, most: number): number {
  if (random.seed < LARGE_SEEDS || most < 1_000_000_000) {
    const usual = Math.min(most, 1_000_000_000)
    return random.chance(0.5) ? Math.min(usual, random.pick(LIMITS)) : random.magnitude(1, usual)
  }
  return random.chance(0.7) ? Math.min(most, random.pick(LARGE_LIMITS)) : random.magnitude(1, most)
}

/** Clock readings are seldom whole microseconds. */
export function finerThanUs(random: Random): number {
  return random.chance(0.2) ? (random.fraction() - 0.5) / 1000 : 0
}

/** How long to block: 0 lifts it. */
export function randomBlockMs(random: Random, windowMs: number): number {
  return random.pick([0, 0.001, 1, 1000, windowMs, random.fraction() * DAY_MS])
}

/** A cost near the most that passes, or a small one, and seldom one above it. */
export function randomCost(random: Random, most: number): number {
  switch (random.integer(0, 7)) {
    case 0:
      return most
    case 1:
      return Math.max(1, most - 1)
    case 2:
      return most + (random.chance(0.3) ? 1 : 0)
    case 3:
    case 4:
      return random.magnitude(1, most)
    default:
      return 1
  }
}

/** When, where and on what a step acts. */
export interface Place {
  /** The reading of the clock, in milliseconds. */
  readonly atMs: number
  readonly key: OracleKey
  /** Which end of the limiter is asked: 0 made it, others are attached to it. */
  readonly end: number
}

type PlainVerb =
  | { readonly verb: 'peek'; readonly cost: number }
  | { readonly verb: 'refund' | 'penalize'; readonly tokens: number }
  | { readonly verb: 'block'; readonly durationMs: number }
  | { readonly verb: 'reset' }

/** A step that leaves nothing to settle or release. */
export type PlainStep = Place & PlainVerb

/**
 * One call of a sequence. An update has no use for its key. A booking or a permit is meant by its number among those asked for so far,
 * from 0 on, counted round; where there is none yet, the step does nothing.
 */
export type Step = Place &
  (
    | PlainVerb
    | { readonly verb: 'take' | 'reserve'; readonly cost: number }
    | { readonly verb: 'update'; readonly policy: PolicySpec }
    | { readonly verb: 'settle'; readonly booking: number; readonly actual: number }
    | { readonly verb: 'cancel'; readonly booking: number }
    | { readonly verb: 'release' | 'heartbeat'; readonly permit: number }
  )

/** A policy and what happens to a few keys of it. */
export interface Sequence {
  readonly policy: PolicySpec
  readonly steps: readonly Step[]
}
