import { type Awaitable, chained, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { decidedAs, type Reservation, TAKE, WAIT } from '../decision/reservation.js'
import type { Hold, OpenOptions } from '../holds/hold.js'
import type { AnyHold } from '../holds/metered.js'
import type { BoundKey, Key, ReserveOptions, WaitOptions } from '../limiter.js'
import type { Duration } from '../time/duration.js'
import { Layer, settling } from './layer.js'

/** What was asked of a limiter. */
export type Deed = 'take' | 'settle' | 'refund' | 'penalize' | 'reset' | 'look'

/** A layer that looks at each answer, whenever it comes, and changes nothing but what it adds to it. */
export abstract class WatchingLayer<Answer extends Decision> extends Layer<Answer> {
  /** @param tokens asked for; of `settle` more or fewer than before. */
  protected abstract seen<Made extends Decision>(key: Key, made: Made, deed: Deed, tokens: number): Made
  protected abstract opened(key: Key, hold: AnyHold, options: OpenOptions | undefined): AnyHold

  take(key: Key, cost = 1): Awaitable<Answer> {
    return chained(this.inner.take(key, cost), (made) => this.seen(key, made, 'take', cost))
  }

  peek(key: Key, cost?: number): Awaitable<Decision> {
    return this.looked(key, this.inner.peek(key, cost))
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    return this.seen(key, await this.inner.wait(key, options), 'take', options.cost ?? 1)
  }

  [TAKE](key: Key, cost = 1): Awaitable<Reservation<When, Answer>> {
    return chained(settling(this.inner)[TAKE](key, cost), (taken) => this.charged(key, taken, cost))
  }

  async [WAIT](key: Key, options: WaitOptions = {}): Promise<Reservation<When, Answer>> {
    return this.charged(key, await settling(this.inner)[WAIT](key, options), options.cost ?? 1)
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>> {
    return chained(this.inner.reserve(key, cost, options), (taken) => this.charged(key, taken, cost))
  }

  override open(key: Key, options?: OpenOptions): Hold {
    return chained(this.inner.open(key, options) as Awaitable<AnyHold>, (hold) => this.opened(key, hold, options)) as Hold
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return chained(this.inner.refund(key, tokens), (made) => this.seen(key, made, 'refund', tokens))
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return chained(this.inner.penalize(key, tokens), (made) => this.seen(key, made, 'penalize', tokens))
  }

  block(key: Key, duration: Duration): Awaitable<Decision> {
    return this.looked(key, this.inner.block(key, duration))
  }

  reset(key: Key): Awaitable<Decision> {
    return chained(this.inner.reset(key), (made) => this.seen(key, made, 'reset', 0))
  }

  key(key: Key): BoundKey<Answer, When> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost = 1) => chained(bound.take(cost), (made) => this.seen(bound.key, made, 'take', cost)),
      peek: (cost) => this.looked(bound.key, bound.peek(cost)),
    })
  }

  private looked(key: Key, decision: Awaitable<Decision>): Awaitable<Decision> {
    return chained(decision, (made) => this.seen(key, made, 'look', 0))
  }

  private charged<Made extends Decision>(key: Key, taken: Reservation<When, Made>, cost: number): Reservation<When, Made> {
    // A reservation that waits has its own answer to whether it is allowed.
    const decision = this.seen(key, taken.decision, taken.allowed ? 'take' : 'look', cost)
    if (!taken.allowed) return taken.decision === decision ? taken : decidedAs(taken, decision)
    let isOpen = true
    const settle = (actualCost: number): Awaitable<Decision> =>
      chained(taken.settle(actualCost) as Awaitable<Decision>, (made) => {
        const more = isOpen ? actualCost - cost : 0
        isOpen = false
        return this.seen(key, made, 'settle', more)
      })
    return { allowed: true, waitMs: taken.waitMs, decision, settle, cancel: () => settle(0) }
  }
}
