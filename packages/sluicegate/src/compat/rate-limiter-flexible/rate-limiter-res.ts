import type { Decision } from '../../decision/decision.js'
import { StoreError } from '../../errors.js'
import { onceInProcess } from '../../once-in-process.js'
import { type LimiterVerbs, stateOf } from '../limiter-verbs.js'
import { isBlocked } from './key-blocks.js'

/** What a call resolves with, and what it rejects with for a denial; not an Error. */
class RateLimiterRes {
  /** Points that may still be consumed in this window. */
  readonly remainingPoints: number
  /**
   * Milliseconds until the window is new; for a denial until the same call would pass, or, if it never does, the rest of the window or
   * block.
   */
  readonly msBeforeNext: number
  /**
   * Points consumed in this window; above all points for a denied key. Denied points are not counted: for a denial it is what they would
   * have come to.
   */
  readonly consumedPoints: number
  /** Whether these points are the first of the window. */
  readonly isFirstInDuration: boolean

  constructor(remainingPoints = 0, msBeforeNext = 0, consumedPoints = 0, isFirstInDuration = false) {
    this.remainingPoints = remainingPoints
    this.msBeforeNext = msBeforeNext
    this.consumedPoints = consumedPoints
    this.isFirstInDuration = isFirstInDuration
  }

  toJSON(): { remainingPoints: number; msBeforeNext: number; consumedPoints: number; isFirstInDuration: boolean } {
    const { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration } = this
    return { remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration }
  }

  toString(): string {
    return JSON.stringify(this)
  }
}

/** One class for both forms of the package, so that `instanceof` agrees. */
const OnceRateLimiterRes: typeof RateLimiterRes = /* @__PURE__ */ onceInProcess('RateLimiterRes', () => RateLimiterRes)
type OnceRateLimiterRes = RateLimiterRes

export { OnceRateLimiterRes as RateLimiterRes }

/** A longer block counts as permanent, for which rate-limiter-flexible has -1; the longest is 100 years. */
const LONGEST_BLOCK_MS = 50 * 366 * 86_400_000

/** Decisions of a limiter in the terms of rate-limiter-flexible. */
export class PointResults {
  private readonly limiter: LimiterVerbs
  private readonly blocksAtDenial: boolean

  /** @param blocksAtDenial whether every denial blocks. */
  constructor(limiter: LimiterVerbs, blocksAtDenial: boolean) {
    this.limiter = limiter
    this.blocksAtDenial = blocksAtDenial
  }

  /** A take of `points` that was allowed. */
  consumed(key: string, decision: Decision, points: number): RateLimiterRes {
    const { spent } = stateOf(this.limiter, key, decision)
    return new RateLimiterRes(decision.remaining, resetOf(decision), spent, spent === points)
  }

  /** A take of `points` that was denied. @throws {StoreError} `OUTAGE` if the decision was made without the store. */
  denied(key: string, decision: Decision, points: number): RateLimiterRes {
    const { source, remaining } = decision
    if (source === 'outage') throw new StoreError('OUTAGE', 'the store does not answer, and denies without it')
    const { burst, spent } = stateOf(this.limiter, key, decision)
    // A key that is denied although enough points are left is blocked, and can consume none.
    const left = this.blocksAtDenial || remaining >= points ? 0 : remaining
    return new RateLimiterRes(left, this.untilNext(key, decision), Math.max(spent + points, burst + 1))
  }

  /** The state of a key after a penalty or a reward. @param first the points of a penalty, which may be the first of the window. */
  changed(key: string, decision: Decision, first?: number): RateLimiterRes {
    if (isShut(decision)) return this.denied(key, decision, 1)
    const { spent } = stateOf(this.limiter, key, decision)
    return new RateLimiterRes(decision.remaining, resetOf(decision), spent, spent === first)
  }

  /**
   * The state of a key. More than all points are consumed if the key is blocked, and, where denials do not block, if the next point would
   * be denied: users of rate-limiter-flexible detect a locked key this way.
   */
  state(key: string, decision: Decision): RateLimiterRes {
    if (decision.allowed || isShut(decision)) return this.changed(key, decision)
    const { burst, spent } = stateOf(this.limiter, key, decision)
    if (this.blocksAtDenial) return new RateLimiterRes(decision.remaining, resetOf(decision), spent)
    return new RateLimiterRes(decision.remaining, this.untilNext(key, decision), Math.max(spent, burst + 1))
  }

  /** The same; null for an unknown key. @throws {StoreError} `OUTAGE` if the state is not known. */
  known(key: string, decision: Decision): RateLimiterRes | null {
    return stateOf(this.limiter, key, decision).isAsNew ? null : this.state(key, decision)
  }

  /** For a request that can never pass the rest of the window, as there; for a permanent block -1. */
  private untilNext(key: string, { retryAfterMs, resetAfterMs }: Decision): number {
    if (retryAfterMs > LONGEST_BLOCK_MS && retryAfterMs !== Number.POSITIVE_INFINITY) return -1
    if (retryAfterMs !== Number.POSITIVE_INFINITY) return retryAfterMs
    return resetAfterMs || (this.limiter.policyOf?.(key) ?? this.limiter.policy).windowMs
  }
}

/** Whether the key can consume nothing, however much is left: it is blocked, on a deny list, or the store does not answer. */
function isShut(decision: Decision): boolean {
  const { allowed, source, retryAfterMs } = decision
  return !allowed && (source === 'outage' || isBlocked(decision) || retryAfterMs === Number.POSITIVE_INFINITY)
}

/** Until all points are new; for several policies, of the one whose points are returned. */
function resetOf({ policy, parts, resetAfterMs }: Decision): number {
  return parts?.find((part) => part.policy === policy)?.resetAfterMs ?? resetAfterMs
}
