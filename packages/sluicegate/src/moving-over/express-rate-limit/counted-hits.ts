import { type Awaitable, chained } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import { StoreError } from '../../errors.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import { BEYOND_ANY_LIMIT, type HitCount, type Hits } from './hits.js'
import { resetTimeOf } from './reset-time.js'
import { WindowEnd } from './window-end.js'

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
