import { checkedAheadMs } from '../arguments.js'
import { type Awaitable, chained, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { emptyPermit, isPermit, type PermitOf } from '../decision/permit.js'
import { decidedAs, type Reservation, TAKE, uncharged, WAIT } from '../decision/reservation.js'
import type { AnyHold, OpenOptions } from '../holds/hold.js'
import { passingHold } from '../holds/uncounted-hold.js'
import type { BoundKey, Key, LimiterHandle, LimiterVerbs, ReserveOptions, WaitOptions } from '../limiter.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'
import { atOnce, type InnerLimiter, Layer, settling } from './layer.js'

/** The property of a shadow limiter that holds its inner limiter, for callers that hide denials themselves. */
export const WITHIN: unique symbol = Symbol.for('sluicegate.within')

/** What the handle of a {@link ShadowLimiter} carries beside that of its inner limiter. */
export interface ShadowHandle extends LimiterHandle {
  readonly shadow?: boolean
}

/**
 * Decides and counts as the inner limiter does, and lets everything pass. A take that would have been denied has `wouldDeny: true` and is
 * not counted, as no denial is. Denials are still published and counted for hot keys.
 */
export class ShadowLimiter<Answer extends Decision> extends Layer<Answer> {
  private readonly permitOf: PermitOf

  constructor(inner: InnerLimiter<Answer>, permitOf: PermitOf) {
    super(inner)
    this.permitOf = permitOf
  }

  get [WITHIN](): LimiterVerbs<Answer> {
    return this.inner
  }

  take(key: Key, cost?: number): Awaitable<Answer> {
    return this.passing(this.inner.take(key, cost))
  }

  peek(key: Key, cost?: number): Awaitable<Decision> {
    return this.passing(this.inner.peek(key, cost))
  }

  /** Resolves at once: a caller that would have waited passes with `wouldDeny`. */
  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  [TAKE](key: Key, cost?: number): Awaitable<Reservation<When, Answer>> {
    return chained(settling(this.inner)[TAKE](key, cost), (taken) => decidedAs(taken, this.passed(taken.decision)))
  }

  async [WAIT](key: Key, options: WaitOptions = {}): Promise<Reservation<When, Answer>> {
    return atOnce(key, options, (cost) => this[TAKE](key, cost))
  }

  /**
   * Books what passes now. A reservation that would have to wait is not booked, as a denial is not counted: callers that do not wait
   * would otherwise drive the key into unbounded debt.
   */
  reserve(key: Key, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>> {
    checkedAheadMs(options)
    const empty = (decision: Decision): Reservation<When> => uncharged(this.passed(decision), () => this.peek(key))
    return chained(this.inner.peek(key, cost), (foreseen): Awaitable<Reservation<When>> => {
      if (!foreseen.allowed) return empty(foreseen)
      return chained(this.inner.reserve(key, cost, { maxWait: 0 }), (booked): Reservation<When> => {
        // Others may have taken the tokens since the peek.
        if (!booked.allowed) return empty({ ...booked.decision, allowed: false })
        const settle = (actualCost: number) => this.passing(booked.settle(actualCost))
        return { allowed: true, waitMs: 0, decision: booked.decision, settle, cancel: () => this.passing(booked.cancel()) }
      })
    })
  }

  /** Refused pieces pass too, uncounted as denials are. */
  override open(key: Key, options?: OpenOptions): Awaitable<AnyHold> {
    return chained(super.open(key, options), (hold) => passingHold(hold, this.passed({ ...hold })))
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.passing(this.inner.refund(key, tokens))
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.passing(this.inner.penalize(key, tokens))
  }

  block(key: Key, duration: Duration): Awaitable<Decision> {
    return this.passing(this.inner.block(key, duration))
  }

  reset(key: Key): Awaitable<Decision> {
    return this.passing(this.inner.reset(key))
  }

  key(key: Key): BoundKey<Answer, When> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost) => this.passing(bound.take(cost)),
      peek: (cost) => this.passing(bound.peek(cost)),
    })
  }

  override handle(): LimiterHandle {
    const handle: ShadowHandle = { ...super.handle(), shadow: true }
    return shownAs(handle, 'LimiterHandle', {})
  }

  private passing<Decided extends Decision>(decision: Awaitable<Decided>): Awaitable<Decided> {
    return chained(decision, (known) => this.passed(known))
  }

  private passed<Decided extends Decision>(decision: Decided): Decided {
    return passing(decision, this.permitOf)
  }
}

/** The decision of a shadow limiter for that of its inner limiter. */
export function passing<Decided extends Decision>(decision: Decided, permitOf: PermitOf = emptyPermit): Decided {
  if (decision.allowed) return decision
  const passed: Decided = { ...decision, allowed: true, retryAfterMs: 0, wouldDeny: true }
  return isPermit(decision) ? (permitOf(passed) as Decided) : passed
}
