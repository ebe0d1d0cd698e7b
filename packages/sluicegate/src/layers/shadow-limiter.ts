import { checkedAheadMs } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { emptyPermit, isPermit } from '../decision/permit.js'
import { type Receipt, receiptWith, TAKE, WAIT } from '../decision/receipt.js'
import { emptyReservation, type Reservation } from '../decision/reservation.js'
import type { BoundKey, Key, Limiter, LimiterHandle, ReserveOptions, WaitOptions } from '../limiter.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'
import { atOnce, receiptsOf, WrappedLimiter } from './wrapped-limiter.js'

/** The property of a shadow limiter, also a shared one, that holds its inner limiter, for callers that hide denials themselves. */
export const WITHIN: unique symbol = Symbol.for('sluicegate.within')

/** What the handle of a {@link ShadowLimiter} carries beside that of its inner limiter. */
export interface ShadowHandle<Answer extends Decision = Decision> extends LimiterHandle<Answer> {
  readonly shadow?: boolean
}

/**
 * Decides and counts as the inner limiter does, and lets everything pass. A take that would have been denied has `wouldDeny: true` and is
 * not counted, as no denial is. Denials are still published and counted for hot keys.
 */
export class ShadowLimiter<Answer extends Decision> extends WrappedLimiter<Answer> implements Limiter<Answer> {
  get [WITHIN](): Limiter<Answer> {
    return this.inner
  }

  take(key: Key, cost?: number): Answer {
    return passing(this.inner.take(key, cost))
  }

  peek(key: Key, cost?: number): Decision {
    return passing(this.inner.peek(key, cost))
  }

  /** Resolves at once: a caller that would have waited passes with `wouldDeny`. */
  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  [TAKE](key: Key, cost?: number): Receipt<Answer> {
    const receipt = receiptsOf(this.inner)[TAKE](key, cost)
    return receiptWith(receipt, passing(receipt.decision))
  }

  async [WAIT](key: Key, options: WaitOptions = {}): Promise<Receipt<Answer>> {
    return atOnce(key, options, (cost) => this[TAKE](key, cost))
  }

  /**
   * Books what passes now. A reservation that would have to wait is not booked, as a denial is not counted: callers that do not wait
   * would otherwise drive the key into unbounded debt.
   */
  reserve(key: Key, cost: number, options?: ReserveOptions): Reservation {
    checkedAheadMs(options)
    const foreseen = this.inner.peek(key, cost)
    if (!foreseen.allowed) return emptyReservation(passing(foreseen), () => this.peek(key))
    const booked = this.inner.reserve(key, cost, { maxWaitMs: 0 })
    // Another thread may have taken the tokens since the peek.
    if (!booked.allowed) return emptyReservation(passing({ ...booked.decision, allowed: false }), () => this.peek(key))
    return {
      allowed: true,
      waitMs: 0,
      decision: booked.decision,
      settle: (actualCost) => passing(booked.settle(actualCost)),
      cancel: () => passing(booked.cancel()),
    }
  }

  refund(key: Key, tokens: number): Decision {
    return passing(this.inner.refund(key, tokens))
  }

  penalize(key: Key, tokens: number): Decision {
    return passing(this.inner.penalize(key, tokens))
  }

  block(key: Key, duration: Duration): Decision {
    return passing(this.inner.block(key, duration))
  }

  reset(key: Key): Decision {
    return passing(this.inner.reset(key))
  }

  key(key: Key): BoundKey<Answer> {
    const bound = this.inner.key(key)
    const own: BoundKey<Answer> = { key: bound.key, take: (cost) => passing(bound.take(cost)), peek: (cost) => passing(bound.peek(cost)) }
    return shownAs(own, 'BoundKey', this.toJSON())
  }

  override handle(): LimiterHandle<Answer> {
    const handle: ShadowHandle<Answer> = { ...this.inner.handle(), shadow: true }
    return shownAs(handle, 'LimiterHandle', {})
  }
}

/** The decision of a shadow limiter for that of its inner limiter. @param permitOf the permit for a decision, which takes no place. */
export function passing<Answer extends Decision>(decision: Answer, permitOf: (passed: Decision) => Decision = emptyPermit): Answer {
  if (decision.allowed) return decision
  const passed: Answer = { ...decision, allowed: true, retryAfterMs: 0, wouldDeny: true }
  return isPermit(decision) ? (permitOf(passed) as Answer) : passed
}
