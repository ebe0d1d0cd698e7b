import { type Awaitable, chained, ignore } from '../../awaitable.js'
import type { Decision } from '../../decision.js'
import { WITHIN } from '../../layers/shadow-limiter.js'
import { atOnce } from '../../layers/wrapped-limiter.js'
import type { Key, WaitOptions } from '../../limiter.js'
import { isPermit } from '../../permit.js'
import type { Duration } from '../../policy/duration.js'
import type { FleetBoundKey, FleetLimiter, FleetReservation } from '../fleet-limiter.js'
import { SharedPermit } from '../shared-permit.js'
import { emptyFleetReservation } from '../waiting/reservations.js'
import { WrappedSharedLimiter } from './wrapped-shared-limiter.js'

/** `ShadowLimiter` for a shared limiter: decides and counts as the inner limiter, and allows everything. */
export class ShadowSharedLimiter<Answer extends Decision> extends WrappedSharedLimiter<Answer> implements FleetLimiter<Answer> {
  get [WITHIN](): FleetLimiter<Answer> {
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

  /** Reserves what passes now. What would have to wait is not reserved, as a denial is not counted. */
  async reserve(key: Key, cost: number): Promise<FleetReservation> {
    const standing = async (): Promise<Decision> => this.peek(key)
    const foreseen = await this.inner.peek(key, cost)
    if (!foreseen.allowed) return emptyFleetReservation(passing(foreseen), standing)
    const booked = await this.inner.reserve(key, cost)
    if (!booked.allowed || booked.waitMs > 0) {
      // Another process took the tokens first.
      ignore(booked.cancel())
      return emptyFleetReservation(passing({ ...booked.decision, allowed: false }), standing)
    }
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

  key(key: Key): FleetBoundKey<Answer> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost) => chained(bound.take(cost), passing),
      peek: (cost) => chained(bound.peek(cost), passing),
    })
  }
}

/** The decision as the shadow passes it on. */
function passing<Answer extends Decision>(decision: Answer): Answer {
  if (decision.allowed) return decision
  const passed: Answer = { ...decision, allowed: true, retryAfterMs: 0, wouldDeny: true }
  return isPermit(decision) ? (SharedPermit.empty(passed) as Decision as Answer) : passed
}
