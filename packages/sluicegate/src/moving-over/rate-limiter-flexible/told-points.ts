import type { Decision } from '../../decision.js'
import { StoreError } from '../../errors.js'
import { standingOf } from '../key-standing.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import { RateLimiterRes } from './rate-limiter-res.js'

/** Decisions of a limiter in the terms of rate-limiter-flexible. */
export class ToldPoints {
  private readonly limiter: LimiterVerbs

  constructor(limiter: LimiterVerbs) {
    this.limiter = limiter
  }

  /** A take of so many points that passed. */
  consumed(key: string, decision: Decision, points: number): RateLimiterRes {
    const { spent } = standingOf(this.limiter, key, decision)
    return new RateLimiterRes(decision.remaining, decision.resetAfterMs, spent, spent === points)
  }

  /**
   * A take of so many points that was denied.
   *
   * @param isBlocked whether every denial blocks.
   * @throws {StoreError} `OUTAGE` where that is no verdict on the key.
   */
  denied(key: string, decision: Decision, points: number, isBlocked = false): RateLimiterRes {
    const { source, remaining, retryAfterMs } = decision
    if (source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and without it this does not pass')
    const { burst, spent } = standingOf(this.limiter, key, decision)
    // Who is denied though enough is left is blocked as well, and can consume none of it.
    return new RateLimiterRes(isBlocked || remaining >= points ? 0 : remaining, finite(retryAfterMs), Math.max(spent + points, burst + 1))
  }

  /**
   * How a key stands. Where the next point would be denied, more than all points are consumed: that is how users of rate-limiter-flexible
   * see, without consuming, that a key is locked out.
   */
  standing(key: string, decision: Decision, first?: number): RateLimiterRes {
    if (!decision.allowed) return this.denied(key, decision, 1)
    const { spent } = standingOf(this.limiter, key, decision)
    return new RateLimiterRes(decision.remaining, decision.resetAfterMs, spent, spent === first)
  }

  /** The same, or null where nothing is known of the key. @throws {StoreError} `OUTAGE` where nobody knows it. */
  known(key: string, decision: Decision): RateLimiterRes | null {
    if (decision.source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and nobody else knows how this key stands')
    return standingOf(this.limiter, key, decision).isAsNew ? null : this.standing(key, decision)
  }
}

/** As rate-limiter-flexible writes "never". */
function finite(ms: number): number {
  return Math.min(ms, Number.MAX_SAFE_INTEGER)
}
