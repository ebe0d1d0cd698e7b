import { type Awaitable, chained } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import { StoreError } from '../../errors.js'
import { type LimiterVerbs, stateOf } from '../limiter-verbs.js'

/** The count of a key, as express-rate-limit takes it from a store. */
export interface HitCount {
  /** >= 1. express-rate-limit denies if it is above `limit`. */
  readonly totalHits: number
  /** When the count is reset; for a denied key, when it would pass. Undefined for never. */
  readonly resetTime: Date | undefined
}

/** Above any limit that is a number. */
export const BEYOND_ANY_LIMIT: number = Number.MAX_SAFE_INTEGER

/** Port: counts the hits of keys. It rejects with `StoreError` if the count is not known, and never makes one up. */
export interface Hits {
  readonly limiter: LimiterVerbs
  /** Adds a hit, atomically. */
  hit(key: string): Awaitable<HitCount>
  /** The count without a hit; undefined for an unknown key. */
  seen(key: string): Awaitable<HitCount | undefined>
}

/**
 * When the count is reset, on this machine's clock; for a denial when the same request would pass, from which `Retry-After` is made.
 * Undefined for never.
 */
function resetTimeOf({ allowed, resetAfterMs, retryAfterMs }: Decision): Date | undefined {
  const ms = allowed ? resetAfterMs : retryAfterMs
  return ms === Number.POSITIVE_INFINITY ? undefined : new Date(Date.now() + ms)
}

/** Two clocks round up. */
const MOST_MS_APART = 1

/** The end of a window that all keys share, on this machine's clock. */
export class WindowEnd {
  private last = new Date(Number.NaN)

  /** The moment after `ms` milliseconds, or the last one returned if that is just after it: making a Date takes as long as counting. */
  after(ms: number): Date {
    const endMs = Date.now() + ms
    // Read each time, as the caller may have changed the Date.
    const apartMs = this.last.getTime() - endMs
    if (!(apartMs >= 0 && apartMs <= MOST_MS_APART)) this.last = new Date(endMs)
    return this.last
  }
}

/** Counts every hit, also denied ones: express-rate-limit decides, even if its limit differs by request. */
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
    // A take of a shared limiter may use a lease, and return the count of this process. A penalty is always one call, and returns the
    // total.
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
  if (source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and the count of this key is not known without it')
  if (allowed) return { totalHits: limit - remaining, resetTime: end.after(resetAfterMs) }
  // A key is denied here only while it is blocked by hand.
  return { totalHits: BEYOND_ANY_LIMIT, resetTime: resetTimeOf(decision) }
}

/** The number that the hits of a key are compared with, by the burst of that key. */
export type LimitFor = (burst: number) => number

const OWN_BURST: LimitFor = (burst) => burst

/**
 * Hits under a limiter that decides by itself: for an allowed request at most the number they are compared with, for a denied one 1 more,
 * also for keys with another burst. Denied requests are not counted.
 */
export class DecidedHits implements Hits {
  readonly limiter: LimiterVerbs
  private readonly limitFor: LimitFor

  /** @param limitFor default the burst of the key. */
  constructor(limiter: LimiterVerbs, limitFor = OWN_BURST) {
    this.limiter = limiter
    this.limitFor = limitFor
  }

  hit(key: string): Awaitable<HitCount> {
    return chained(this.limiter.take(key), (decision) => this.countOf(key, decision))
  }

  seen(key: string): Awaitable<HitCount | undefined> {
    return chained(this.limiter.peek(key), (decision) =>
      stateOf(this.limiter, key, decision).isAsNew ? undefined : this.countOf(key, decision),
    )
  }

  /** The count that a decision stands for. */
  countOf(key: string, decision: Decision): HitCount {
    const { allowed, source } = decision
    if (!allowed && source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and denies without it')
    const { burst, spent } = stateOf(this.limiter, key, decision)
    const limit = this.limitFor(burst)
    return { totalHits: allowed ? Math.min(Math.max(1, spent), limit) : limit + 1, resetTime: resetTimeOf(decision) }
  }
}
