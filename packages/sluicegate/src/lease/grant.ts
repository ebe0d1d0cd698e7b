/** Tokens that a backend charged ahead of need. Durations are microseconds from its answer on, by its clock. */
export interface Grant {
  /** They may be spent from now on: none is charged before it conforms. */
  readonly tokens: number
  /** When token `token` of them expires. The times never decrease. */
  endUs(token: number): number
  /**
   * True where spent tokens come back one by one, as with a rate: then the answer says when any number of tokens would pass, and unspent
   * tokens are not returned. False for a window or log: only the backend knows, and other processes may return what they hold.
   */
  readonly flowsBack: boolean
  /** The id under which tokens are returned; undefined when none can be. */
  readonly id?: number | undefined
  /** Whether tokens that expire unspent are returned; default: unless they flow back. */
  readonly isReturned?: boolean
  /** Until the smallest useful number of tokens would pass again if no other process took any. */
  readonly untilFreeUs: number
  /** The same for `tokens`, or for fewer where only the backend knows more; undefined where nothing is known. */
  untilFreeFor(tokens: number): number | undefined
  /** How long a ban still denies everything. */
  readonly blockedUs: number
  /** Whole tokens left at the backend, and until the key is full there. */
  readonly remaining: number
  readonly untilNewUs: number
  /** The part of the budget that may still be leased there; default: of `remaining` in the most that is ever leased. */
  readonly budget?: number
  /** Whether the next request may bring more at once, although this one brought less than was wanted. */
  readonly hasMore?: boolean
  /** Nothing is leased for now: the backend decides each take by itself. */
  readonly isNone?: boolean
}

/** Tokens of a grant of policy `part` of `allOf`, else 0: what one take has spent of it, or what none has. */
export interface Granted {
  readonly grantId: number
  readonly part: number
  readonly cost: number
}

/** Receives what a take spends of each grant. */
export interface Spent {
  push(granted: Granted): unknown
}

/** How long an answer may take: a lease, or as long as its tokens last where that is longer. */
export function spentWithinUs(grant: Grant, leaseUs: number): number {
  return grant.tokens > 0 ? Math.max(leaseUs, grant.endUs(0)) : leaseUs
}

/** A request for tokens, and when it was sent. */
export interface TokenRequest {
  readonly want: number
  readonly least: number
  readonly sentUs: number
  /** Whether it is worth a lease; else the backend decides the take that waits, if there is one. */
  readonly isLease: boolean
}

/**
 * How a refill ended: its tokens arrived in time to be spent, arrived late, or the backend could not be reached. `alone`: it is not worth a
 * lease, and the backend decides the one take that waits.
 */
export type RefillOutcome = 'in time' | 'late' | 'out' | 'alone'
