import type { Decision } from '../../decision.js'
import { StoreError } from '../../errors.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import { standingOf } from '../limiter-verbs.js'
import { isBlocked } from './key-blocks.js'
import { RateLimiterRes } from './rate-limiter-res.js'

/** A block is told as one for ever that is longer than 50 years: none lasts longer than a hundred. */
const LONGEST_TOLD_MS = 50 * 366 * 86_400_000

/** Decisions of a limiter in the terms of rate-limiter-flexible. */
export class ToldPoints {
  private readonly limiter: LimiterVerbs
  private readonly blocksAtDenial: boolean

  /** @param blocksAtDenial whether every denial blocks. */
  constructor(limiter: LimiterVerbs, blocksAtDenial: boolean) {
    this.limiter = limiter
    this.blocksAtDenial = blocksAtDenial
  }

  /** A take of so many points that passed. */
  consumed(key: string, decision: Decision, points: number): RateLimiterRes {
    const { spent } = standingOf(this.limiter, key, decision)
    return new RateLimiterRes(decision.remaining, resetOf(decision), spent, spent === points)
  }

  /** A take of so many points that was denied. @throws {StoreError} `OUTAGE` where that is no verdict on the key. */
  denied(key: string, decision: Decision, points: number): RateLimiterRes {
    const { source, remaining } = decision
    if (source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and without it this does not pass')
    const { burst, spent } = standingOf(this.limiter, key, decision)
    // Who is denied though enough is left is blocked, and can consume none of it.
    const left = this.blocksAtDenial || remaining >= points ? 0 : remaining
    return new RateLimiterRes(left, this.untilNext(key, decision), Math.max(spent + points, burst + 1))
  }

  /** How a key stands after a penalty or a reward. @param first the points of a penalty, which may be the first ones. */
  changed(key: string, decision: Decision, first?: number): RateLimiterRes {
    if (isShut(decision)) return this.denied(key, decision, 1)
    const { spent } = standingOf(this.limiter, key, decision)
    return new RateLimiterRes(decision.remaining, resetOf(decision), spent, spent === first)
  }

  /**
   * How a key stands. Above all points are consumed where the key is blocked, and, where no denial blocks, where the next point would be
   * denied: that is how users of rate-limiter-flexible see, without consuming, that a key is locked out.
   */
  standing(key: string, decision: Decision): RateLimiterRes {
    if (decision.allowed || isShut(decision)) return this.changed(key, decision)
    const { burst, spent } = standingOf(this.limiter, key, decision)
    if (this.blocksAtDenial) return new RateLimiterRes(decision.remaining, resetOf(decision), spent)
    return new RateLimiterRes(decision.remaining, this.untilNext(key, decision), Math.max(spent, burst + 1))
  }

  /** The same, or null where nothing is known of the key. @throws {StoreError} `OUTAGE` where nobody knows it. */
  known(key: string, decision: Decision): RateLimiterRes | null {
    return standingOf(this.limiter, key, decision).isAsNew ? null : this.standing(key, decision)
  }

  /** Of what never passes the rest of the window, as there, and of a block for ever -1. */
  private untilNext(key: string, { retryAfterMs, resetAfterMs }: Decision): number {
    if (retryAfterMs > LONGEST_TOLD_MS && retryAfterMs !== Number.POSITIVE_INFINITY) return -1
    if (retryAfterMs !== Number.POSITIVE_INFINITY) return retryAfterMs
    return resetAfterMs || (this.limiter.policyOf?.(key) ?? this.limiter.policy).windowMs
  }
}

/** Whether the key can consume nothing, however much is left: it is blocked, on a deny list, or nobody can say. */
function isShut(decision: Decision): boolean {
  const { allowed, source, retryAfterMs } = decision
  return !allowed && (source === 'outage' || isBlocked(decision) || retryAfterMs === Number.POSITIVE_INFINITY)
}

/** Until all points are new: of several policies of that one whose points are told. */
function resetOf({ policy, parts, resetAfterMs }: Decision): number {
  return parts?.find((part) => part.policy === policy)?.resetAfterMs ?? resetAfterMs
}
