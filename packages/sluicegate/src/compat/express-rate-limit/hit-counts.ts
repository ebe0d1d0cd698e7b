import { type Awaitable, chained } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import { StoreError } from '../../errors.js'
import { type LimiterVerbs, standingOf } from '../limiter-verbs.js'

/** How often a key has hit, as express-rate-limit is told. */
export interface HitCount {
  /** At least 1. It denies where this is above its `limit`. */
  readonly totalHits: number
  /** When the count begins anew; of what is denied, when it would pass. Undefined where that never is. */
  readonly resetTime: Date | undefined
}

/** More than any limit that is a number. */
export const BEYOND_ANY_LIMIT: number = Number.MAX_SAFE_INTEGER

/** Port: counts the hits of keys. It rejects with `StoreError` where it cannot know, and never makes a number up. */
export interface Hits {
  readonly limiter: LimiterVerbs
  /** One more, in one step. */
  hit(key: string): Awaitable<HitCount>
  /** How it stands, or undefined where nothing is known of the key. */
  seen(key: string): Awaitable<HitCount | undefined>
}

/**
 * When the count is new, as a moment of this machine's clock; of a denial when the same would pass, which is what `Retry-After` is made of.
 * Undefined where that never is.
 */
export function resetTimeOf({ allowed, resetAfterMs, retryAfterMs }: Decision): Date | undefined {
  const ms = allowed ? resetAfterMs : retryAfterMs
  return ms === Number.POSITIVE_INFINITY ? undefined : new Date(Date.now() + ms)
}

/** Of what is rounded up twice, by two clocks. */
const MOST_MS_APART = 1

/** The end of a window that all keys share, as a moment of this machine's clock. */
export class WindowEnd {
  private last = new Date(Number.NaN)

  /** The moment in so many milliseconds, or one just after it that was told before: to make a date takes as long as to count. */
  after(ms: number): Date {
    const endMs = Date.now() + ms
    // Read anew each time: whoever was given it may have changed it.
    const apartMs = this.last.getTime() - endMs
    if (!(apartMs >= 0 && apartMs <= MOST_MS_APART)) this.last = new Date(endMs)
    return this.last
  }
}

/** Counts every hit, also those that are denied: express-rate-limit decides, whatever its limit is for a request. */
export class CountedHits implements Hits {
  readonly limiter: LimiterVerbs
  private readonly isHere: boolean
  private readonly end = new WindowEnd()
  private readonly countOf = (decision: Decision): HitCount => countOf(decision, this.end)

  /** @param limiter under {@link countingPolicy}. @param isHere whether it is in the memory of this process. */
  constructor(limiter: LimiterVerbs, isHere: boolean) {
    this.limiter = limiter
    this.isHere = isHere
  }

  hit(key: string): Awaitable<HitCount> {
    const { limiter } = this
    // A take of a fleet may be of a lease, and tell what this process knows. A penalty is always one call, and tells the count of all.
    return chained(this.isHere ? limiter.take(key) : limiter.penalize(key, 1), this.countOf)
  }

  seen(key: string): Awaitable<HitCount | undefined> {
    return chained(this.limiter.peek(key), (decision) => {
      const count = this.countOf(decision)
      return count.totalHits === 0 ? undefined : count
    })
  }
}

function countOf(decision: Decision, end: WindowEnd): HitCount {
  const { allowed, limit, remaining, resetAfterMs, source } = decision
  if (source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and nobody else knows how often this key has hit')
  if (allowed) return { totalHits: limit - remaining, resetTime: end.after(resetAfterMs) }
  // Only who was blocked by hand.
  return { totalHits: BEYOND_ANY_LIMIT, resetTime: resetTimeOf(decision) }
}

/** What the hits of a key are compared with, given what the limiter lets that key pass at once. */
export type LimitFor = (burst: number) => number

const OWN_BURST: LimitFor = (burst) => burst

/**
 * Hits under a limiter that decides by itself: of what it lets pass there are at most as many as they are compared with, of what it denies
 * one more, also where it lets this key pass more or less than others. What is denied is not counted.
 */
export class DecidedHits implements Hits {
  readonly limiter: LimiterVerbs
  private readonly limitFor: LimitFor

  /** @param limitFor default what the limiter lets the key pass at once. */
  constructor(limiter: LimiterVerbs, limitFor = OWN_BURST) {
    this.limiter = limiter
    this.limitFor = limitFor
  }

  hit(key: string): Awaitable<HitCount> {
    return chained(this.limiter.take(key), (decision) => this.countOf(key, decision))
  }

  seen(key: string): Awaitable<HitCount | undefined> {
    return chained(this.limiter.peek(key), (decision) =>
      standingOf(this.limiter, key, decision).isAsNew ? undefined : this.countOf(key, decision),
    )
  }

  /** How a decision about a key is told. */
  countOf(key: string, decision: Decision): HitCount {
    const { allowed, source } = decision
    if (!allowed && source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and without it this does not pass')
    const { burst, spent } = standingOf(this.limiter, key, decision)
    const limit = this.limitFor(burst)
    return { totalHits: allowed ? Math.min(Math.max(1, spent), limit) : limit + 1, resetTime: resetTimeOf(decision) }
  }
}
