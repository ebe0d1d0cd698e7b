/** Tokens that a backend charged ahead of need. Durations are microseconds from its answer on, by its clock. */
export interface Grant {
  /** Tokens that may be spent at once. */
  readonly availableNow: number
  /** Tokens that may be spent later. */
  readonly availableLater: number
  /** When token `token` may be spent, 0 for those available now. Tokens are numbered over both groups; the times never decrease. */
  beginUs(token: number): number
  /** When token `token` expires. The times never decrease. */
  endUs(token: number): number
  /**
   * True where spent tokens come back one by one, as with a rate: then the answer says when any number of tokens would pass. False for a
   * window or log: only the backend knows, and other processes may return what they hold.
   */
  readonly flowsBack: boolean
  /** The id under which unspent tokens are returned; undefined when none can be. */
  readonly id?: number | undefined
  /** Until the smallest useful number of tokens would pass again if no other process took any. */
  readonly untilFreeUs: number
  /** The same for `tokens`, or for fewer where only the backend knows more; undefined where nothing is known. */
  untilFreeFor(tokens: number): number | undefined
  /** When to ask again after a short answer; random, so that processes do not ask together. */
  readonly askAfterUs: number
  /** How long a ban still denies everything. */
  readonly blockedUs: number
  /** Whole tokens left at the backend, and until the key is full there. */
  readonly remaining: number
  readonly untilNewUs: number
}

/** A request for tokens, and when it was sent. */
export interface TokenRequest {
  readonly want: number
  readonly least: number
  readonly sentUs: number
  /** Whether to lease: else the backend decides the one take that waits. */
  readonly isWorthIt: boolean
}

/**
 * How a refill ended: its tokens arrived in time to be spent, arrived late, or the backend could not be reached. `alone`: it is not worth a
 * lease, and the backend decides the one take that waits.
 */
export type RefillOutcome = 'in time' | 'late' | 'out' | 'alone'

/** Shares of the horizon: how long before more tokens are free a process asks again that got some, and one that got none. */
const AHEAD = [0.1, 0.4] as const
const AHEAD_OF_NONE = [0.2, 1] as const

/**
 * When to ask again after a short answer. A process that got tokens asks when most of another horizon is free; one that got none asks
 * earlier. The time is random: each process gets what became free since the one before it asked, so a fixed order would give unequal shares.
 */
export function askAfterUs(untilFreeUs: number, granted: number, horizonUs: number, random = Math.random): number {
  const [least, most] = granted > 0 ? AHEAD : AHEAD_OF_NONE
  return Math.max(0, untilFreeUs - (least + (most - least) * random()) * horizonUs)
}
