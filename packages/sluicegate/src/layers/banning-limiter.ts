import { blockUs } from '../arguments.js'
import { type Awaitable, chained, isPromise, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { isPermit, type PermitOf } from '../decision/permit.js'
import { decidedAs, type Reservation, TAKE, WAIT } from '../decision/reservation.js'
import { StoreError } from '../errors.js'
import type { AnyHold, OpenOptions } from '../holds/hold.js'
import { uncountedHold } from '../holds/uncounted-hold.js'
import type { BoundKey, Key, ReserveOptions, WaitOptions } from '../limiter.js'
import type { Duration } from '../time/duration.js'
import { type BanCounter, checkSingle } from './ban-counter.js'
import { type InnerLimiter, Layer, settling } from './layer.js'

/** Bans keys whose takes are denied too often. Each process and thread counts its own denials; the ban is for all. */
export class BanningLimiter<Answer extends Decision> extends Layer<Answer> {
  private readonly counter: BanCounter
  private readonly permitOf: PermitOf

  constructor(inner: InnerLimiter<Answer>, counter: BanCounter, permitOf: PermitOf) {
    super(inner)
    this.counter = counter
    this.permitOf = permitOf
  }

  take(key: Key, cost = 1): Awaitable<Answer> {
    checkSingle(key)
    return chained(this.inner.take(key, cost), (decision) => this.counted(key as string, cost, decision))
  }

  peek(key: Key, cost?: number): Awaitable<Decision> {
    return this.inner.peek(key, cost)
  }

  wait(key: Key, options?: WaitOptions): Promise<Answer> {
    return this.inner.wait(key, options)
  }

  [TAKE](key: Key, cost = 1): Awaitable<Reservation<When, Answer>> {
    checkSingle(key)
    return chained(settling(this.inner)[TAKE](key, cost), (taken) =>
      chained(this.counted(key as string, cost, taken.decision), (decision) => decidedAs(taken, decision)),
    )
  }

  [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<When, Answer>> {
    return settling(this.inner)[WAIT](key, options)
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>> {
    return this.inner.reserve(key, cost, options)
  }

  override open(key: Key, options?: OpenOptions): Awaitable<AnyHold> {
    checkSingle(key)
    return chained(super.open(key, options), (hold): Awaitable<AnyHold> => {
      if (hold.allowed) return hold
      // Of a cost that its tokens do not cover.
      return chained(this.counted(key as string, hold.remaining + 1, hold as unknown as Answer), uncountedHold)
    })
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.inner.refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.inner.penalize(key, tokens)
  }

  block(key: Key, duration: Duration): Awaitable<Decision> {
    return chained(this.inner.block(key, duration), (decision) => {
      if (typeof key === 'string') this.counter.blocked(key, blockUs(duration) / 1000)
      return decision
    })
  }

  reset(key: Key): Awaitable<Decision> {
    return chained(this.inner.reset(key), (decision) => {
      if (typeof key === 'string') this.counter.forget(key)
      return decision
    })
  }

  key(key: Key): BoundKey<Answer, When> {
    checkSingle(key)
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost = 1) => chained(bound.take(cost), (decision) => this.counted(key as string, cost, decision)),
      peek: (cost) => bound.peek(cost),
    })
  }

  override close(): void {
    super.close()
    this.counter.close()
  }

  private counted(key: string, cost: number, decision: Answer): Awaitable<Answer> {
    if (decision.allowed || !this.counter.isCounting) return decision
    const forMs = this.counter.denied(key, cost, decision, this.policyOf(key))
    if (forMs === 0) return decision
    return chained(this.isBanned(key, forMs), (isBanned) => {
      if (!isBanned) return decision
      this.counter.publish(key, decision, forMs)
      const banned = bannedFor(decision, forMs)
      return isPermit(decision) ? (this.permitOf(banned) as Answer) : banned
    })
  }

  /** False if the ban could not be stored, as in a full table or without the store: the denial stands, and later denials are counted. */
  private isBanned(key: string, forMs: number): Awaitable<boolean> {
    const missed = (error: unknown): boolean => {
      if (!(error instanceof StoreError)) throw error
      this.counter.missed(key)
      return false
    }
    try {
      const blocked = this.inner.block(key, forMs)
      return isPromise(blocked) ? blocked.then(() => true, missed) : true
    } catch (error) {
      return missed(error)
    }
  }
}

/** The denial with the times of a ban that begins now. */
function bannedFor<Answer extends Decision>(decision: Answer, forMs: number): Answer {
  const retryAfterMs = Math.max(decision.retryAfterMs, Math.ceil(forMs))
  return { ...decision, retryAfterMs, resetAfterMs: Math.max(decision.resetAfterMs, retryAfterMs) }
}
