import { blockUs, checkedAheadMs, checkedTokens } from '../../arguments.js'
import { type Awaitable, chained } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import { isPermit } from '../../decision/permit.js'
import { emptyReceipt, type Receipt, type Receipting, receiptWith, TAKE, WAIT } from '../../decision/receipt.js'
import type { Reservation } from '../../decision/reservation.js'
import { StoreError } from '../../errors.js'
import { type BanCounter, checkSingle } from '../../layers/ban-counter.js'
import { bannedFor } from '../../layers/banning-limiter.js'
import { type KeyLists, ListedKeys } from '../../layers/listed-limiter.js'
import { passing as passingWith, WITHIN } from '../../layers/shadow-limiter.js'
import { atOnce, Layer, policyIn } from '../../layers/wrapped-limiter.js'
import type { BoundKey, Key, ReserveOptions, WaitOptions } from '../../limiter.js'
import { shownAs } from '../../shown.js'
import type { Duration } from '../../time/duration.js'
import type { ShardLoads } from '../calls/shard-load.js'
import type { SharedLimiter, SharedStats } from '../shared-limiter.js'
import { SharedPermit } from '../shared-permit.js'
import { emptySharedReservation } from '../waiting/reservations.js'

/** The receipts of a shared limiter. */
export function receiptsOf<Answer extends Decision>(limiter: SharedLimiter<Answer>): Receipting<Answer> {
  return limiter as SharedLimiter<Answer> & Receipting<Answer>
}

/** A layer around a shared limiter. */
export abstract class WrappedSharedLimiter<Answer extends Decision> extends Layer<SharedLimiter<Answer>> implements Receipting<Answer> {
  abstract [TAKE](key: Key, cost?: number): Awaitable<Receipt<Answer>>
  abstract [WAIT](key: Key, options?: WaitOptions): Promise<Receipt<Answer>>
  abstract override take(key: Key, cost?: number): Awaitable<Answer>
  abstract override wait(key: Key, options?: WaitOptions): Promise<Answer>
  abstract override refund(key: Key, tokens: number): Promise<Decision>
  abstract override penalize(key: Key, tokens: number): Promise<Decision>

  stats(): SharedStats {
    return this.inner.stats()
  }

  shards(n?: number): ShardLoads {
    return this.inner.shards(n)
  }

  /** A bound key of this limiter; logs show it without the key. */
  protected bound(bound: BoundKey<Answer, 'later'>): BoundKey<Answer, 'later'> {
    return shownAs(bound, 'BoundKey', this.toJSON())
  }
}

/** `ListedLimiter` for a shared limiter: keys that always pass and keys that never do, without a call to the backend. */
export class ListedSharedLimiter<Answer extends Decision> extends WrappedSharedLimiter<Answer> implements SharedLimiter<Answer> {
  private readonly listed: ListedKeys<Answer>

  constructor(inner: SharedLimiter<Answer>, lists: KeyLists) {
    super(inner)
    this.listed = new ListedKeys(lists, (key) => policyIn(inner, key), SharedPermit.empty)
  }

  take(key: Key, cost = 1): Awaitable<Answer> {
    return this.listed.taken(key, cost) ?? this.inner.take(key, cost)
  }

  peek(key: Key, cost = 1): Awaitable<Decision> {
    return this.listed.foreseen(key, cost) ?? this.inner.peek(key, cost)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    if (!this.listed.has(key)) return this.inner.wait(key, options)
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  [TAKE](key: Key, cost = 1): Awaitable<Receipt<Answer>> {
    const listed = this.listed.taken(key, cost)
    return listed === undefined ? receiptsOf(this.inner)[TAKE](key, cost) : emptyReceipt(listed)
  }

  async [WAIT](key: Key, options: WaitOptions = {}): Promise<Receipt<Answer>> {
    if (!this.listed.has(key)) return receiptsOf(this.inner)[WAIT](key, options)
    return atOnce(key, options, (cost) => this[TAKE](key, cost))
  }

  async reserve(key: Key, cost: number, options?: ReserveOptions): Promise<Reservation<'later'>> {
    const decision = this.listed.foreseen(key, cost)
    return decision === undefined ? this.inner.reserve(key, cost, options) : emptySharedReservation(decision, async () => decision)
  }

  async refund(key: Key, tokens: number): Promise<Decision> {
    return this.listed.unchanged(key, () => checkedTokens(tokens)) ?? this.inner.refund(key, tokens)
  }

  async penalize(key: Key, tokens: number): Promise<Decision> {
    return this.listed.unchanged(key, () => checkedTokens(tokens)) ?? this.inner.penalize(key, tokens)
  }

  async block(key: Key, duration: Duration): Promise<Decision> {
    return this.listed.unchanged(key, () => blockUs(duration)) ?? this.inner.block(key, duration)
  }

  async reset(key: Key): Promise<Decision> {
    return this.listed.foreseen(key) ?? this.inner.reset(key)
  }

  /** A function decides about the key at each call, not only here. */
  key(key: Key): BoundKey<Answer, 'later'> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost = 1) => this.listed.taken(bound.key, cost) ?? bound.take(cost),
      peek: (cost = 1) => this.listed.foreseen(bound.key, cost) ?? bound.peek(cost),
    })
  }
}

/** `BanningLimiter` for a shared limiter: each process counts its own denials; the ban at the backend holds for all. */
export class BanningSharedLimiter<Answer extends Decision> extends WrappedSharedLimiter<Answer> implements SharedLimiter<Answer> {
  private readonly counter: BanCounter

  constructor(inner: SharedLimiter<Answer>, counter: BanCounter) {
    super(inner)
    this.counter = counter
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

  [TAKE](key: Key, cost = 1): Awaitable<Receipt<Answer>> {
    checkSingle(key)
    return chained(receiptsOf(this.inner)[TAKE](key, cost), (receipt) =>
      chained(this.counted(key as string, cost, receipt.decision), (decision) => receiptWith(receipt, decision)),
    )
  }

  [WAIT](key: Key, options?: WaitOptions): Promise<Receipt<Answer>> {
    return receiptsOf(this.inner)[WAIT](key, options)
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Promise<Reservation<'later'>> {
    return this.inner.reserve(key, cost, options)
  }

  refund(key: Key, tokens: number): Promise<Decision> {
    return this.inner.refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Promise<Decision> {
    return this.inner.penalize(key, tokens)
  }

  async block(key: Key, duration: Duration): Promise<Decision> {
    const decision = await this.inner.block(key, duration)
    if (typeof key === 'string') this.counter.blocked(key, blockUs(duration) / 1000)
    return decision
  }

  async reset(key: Key): Promise<Decision> {
    const decision = await this.inner.reset(key)
    if (typeof key === 'string') this.counter.forget(key)
    return decision
  }

  key(key: Key): BoundKey<Answer, 'later'> {
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
    return forMs === 0 ? decision : this.banned(key, decision, forMs)
  }

  private async banned(key: string, decision: Answer, forMs: number): Promise<Answer> {
    try {
      await this.inner.block(key, forMs)
    } catch (error) {
      // Without its backend no key is banned: the denial stands, and later ones are counted.
      if (!(error instanceof StoreError)) throw error
      this.counter.missed(key)
      return decision
    }
    this.counter.publish(key, decision, forMs)
    const banned = bannedFor(decision, forMs)
    return isPermit(decision) ? (SharedPermit.empty(banned) as Decision as Answer) : banned
  }
}

/** `ShadowLimiter` for a shared limiter: decides and counts as the inner limiter, and allows everything. */
export class ShadowSharedLimiter<Answer extends Decision> extends WrappedSharedLimiter<Answer> implements SharedLimiter<Answer> {
  get [WITHIN](): SharedLimiter<Answer> {
    return this.inner
  }

  take(key: Key, cost?: number): Awaitable<Answer> {
    return chained(this.inner.take(key, cost), passing)
  }

  peek(key: Key, cost?: number): Awaitable<Decision> {
    return chained(this.inner.peek(key, cost), passing)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  [TAKE](key: Key, cost?: number): Awaitable<Receipt<Answer>> {
    return chained(receiptsOf(this.inner)[TAKE](key, cost), (receipt) => receiptWith(receipt, passing(receipt.decision)))
  }

  async [WAIT](key: Key, options: WaitOptions = {}): Promise<Receipt<Answer>> {
    return atOnce(key, options, (cost) => this[TAKE](key, cost))
  }

  /** Reserves what passes now. What would have to wait is not reserved, as a denial is not counted. */
  async reserve(key: Key, cost: number, options?: ReserveOptions): Promise<Reservation<'later'>> {
    checkedAheadMs(options)
    const stateOf = async (): Promise<Decision> => this.peek(key)
    const foreseen = await this.inner.peek(key, cost)
    if (!foreseen.allowed) return emptySharedReservation(passing(foreseen), stateOf)
    const booked = await this.inner.reserve(key, cost, { maxWaitMs: 0 })
    // Another process may have taken the tokens first.
    if (!booked.allowed) return emptySharedReservation(passing({ ...booked.decision, allowed: false }), stateOf)
    return {
      allowed: true,
      waitMs: 0,
      decision: booked.decision,
      settle: (actualCost) => booked.settle(actualCost).then(passing),
      cancel: () => booked.cancel().then(passing),
    }
  }

  refund(key: Key, tokens: number): Promise<Decision> {
    return this.inner.refund(key, tokens).then(passing)
  }

  penalize(key: Key, tokens: number): Promise<Decision> {
    return this.inner.penalize(key, tokens).then(passing)
  }

  block(key: Key, duration: Duration): Promise<Decision> {
    return this.inner.block(key, duration).then(passing)
  }

  reset(key: Key): Promise<Decision> {
    return this.inner.reset(key).then(passing)
  }

  key(key: Key): BoundKey<Answer, 'later'> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost) => chained(bound.take(cost), passing),
      peek: (cost) => chained(bound.peek(cost), passing),
    })
  }
}

function passing<Answer extends Decision>(decision: Answer): Answer {
  return passingWith(decision, SharedPermit.empty)
}
