import { blockUs } from '../../arguments.js'
import { type Awaitable, chained } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import { StoreError } from '../../errors.js'
import { type BanCounter, checkSingle } from '../../layers/ban-counter.js'
import { bannedFor } from '../../layers/banning-limiter.js'
import type { Key, WaitOptions } from '../../limiter.js'
import { isPermit } from '../../permit.js'
import type { Duration } from '../../policy/duration.js'
import type { FleetBoundKey, FleetLimiter, FleetReservation } from '../fleet-limiter.js'
import { SharedPermit } from '../shared-permit.js'
import { WrappedSharedLimiter } from './wrapped-shared-limiter.js'

/** `BanningLimiter` for a shared limiter: each process counts its own denials; the ban at the backend holds for all. */
export class BanningSharedLimiter<Answer extends Decision> extends WrappedSharedLimiter<Answer> implements FleetLimiter<Answer> {
  private readonly counter: BanCounter

  constructor(inner: FleetLimiter<Answer>, counter: BanCounter) {
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

  reserve(key: Key, cost: number): Promise<FleetReservation> {
    return this.inner.reserve(key, cost)
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

  key(key: Key): FleetBoundKey<Answer> {
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
