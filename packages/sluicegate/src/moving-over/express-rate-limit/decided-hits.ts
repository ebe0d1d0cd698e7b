import { type Awaitable, chained } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import { StoreError } from '../../errors.js'
import { standingOf } from '../key-standing.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import type { HitCount, Hits } from './hits.js'
import { resetTimeOf } from './reset-time.js'

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
