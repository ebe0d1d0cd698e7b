import { blockUs } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { emptyPermit, isPermit } from '../decision/permit.js'
import { type Receipt, receiptWith, TAKE, WAIT } from '../decision/receipt.js'
import type { Reservation } from '../decision/reservation.js'
import { StoreError } from '../errors.js'
import type { BoundKey, Key, Limiter, ReserveOptions, WaitOptions } from '../limiter.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'
import { type BanCounter, checkSingle } from './ban-counter.js'
import { receiptsOf, WrappedLimiter } from './wrapped-limiter.js'

/** Bans keys whose takes are denied too often. */
export class BanningLimiter<Answer extends Decision> extends WrappedLimiter<Answer> implements Limiter<Answer> {
  private readonly counter: BanCounter

  constructor(inner: Limiter<Answer>, counter: BanCounter) {
    super(inner)
    this.counter = counter
  }

  take(key: Key, cost = 1): Answer {
    checkSingle(key)
    return this.counted(key as string, cost, this.inner.take(key, cost))
  }

  peek(key: Key, cost?: number): Decision {
    return this.inner.peek(key, cost)
  }

  wait(key: Key, options?: WaitOptions): Promise<Answer> {
    return this.inner.wait(key, options)
  }

  [TAKE](key: Key, cost = 1): Receipt<Answer> {
    checkSingle(key)
    const receipt = receiptsOf(this.inner)[TAKE](key, cost)
    return receiptWith(receipt, this.counted(key as string, cost, receipt.decision))
  }

  [WAIT](key: Key, options?: WaitOptions): Promise<Receipt<Answer>> {
    return receiptsOf(this.inner)[WAIT](key, options)
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Reservation {
    return this.inner.reserve(key, cost, options)
  }

  refund(key: Key, tokens: number): Decision {
    return this.inner.refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Decision {
    return this.inner.penalize(key, tokens)
  }

  block(key: Key, duration: Duration): Decision {
    const decision = this.inner.block(key, duration)
    if (typeof key === 'string') this.counter.blocked(key, blockUs(duration) / 1000)
    return decision
  }

  reset(key: Key): Decision {
    const decision = this.inner.reset(key)
    if (typeof key === 'string') this.counter.forget(key)
    return decision
  }

  key(key: Key): BoundKey<Answer> {
    checkSingle(key)
    const bound = this.inner.key(key)
    const own: BoundKey<Answer> = {
      key: bound.key,
      take: (cost = 1) => this.counted(key as string, cost, bound.take(cost)),
      peek: (cost) => bound.peek(cost),
    }
    return shownAs(own, 'BoundKey', this.toJSON())
  }

  override close(): void {
    super.close()
    this.counter.close()
  }

  private counted(key: string, cost: number, decision: Answer): Answer {
    if (decision.allowed) return decision
    const forMs = this.counter.denied(key, cost, decision, this.policyOf(key))
    if (forMs === 0 || !this.isBanned(key, forMs)) return decision
    this.counter.publish(key, decision, forMs)
    const banned = bannedFor(decision, forMs)
    return isPermit(decision) ? ({ ...banned, ...emptyPermit(banned) } as Answer) : banned
  }

  /** False if the ban could not be stored, for example in a full table: the denial stands, and later denials are counted. */
  private isBanned(key: string, forMs: number): boolean {
    try {
      this.inner.block(key, forMs)
      return true
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      this.counter.missed(key)
      return false
    }
  }
}

/** The denial with the times of a ban that begins now. */
export function bannedFor<Answer extends Decision>(decision: Answer, forMs: number): Answer {
  const retryAfterMs = Math.max(decision.retryAfterMs, Math.ceil(forMs))
  return { ...decision, retryAfterMs, resetAfterMs: Math.max(decision.resetAfterMs, retryAfterMs) }
}
