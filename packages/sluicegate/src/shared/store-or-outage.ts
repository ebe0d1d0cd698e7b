import type { Decision } from '../decision.js'
import { isOutage } from '../errors.js'
import type { Key } from '../limiter.js'
import type { WaitRequest } from '../wait-request.js'
import type { CallGuard } from './call-guard.js'
import type { FleetVerbs } from './fleet-verbs.js'
import type { Outage } from './outage.js'

/** Who is asked, and who decides without: of the policy of the moment. */
interface Asked {
  readonly store: CallGuard
  readonly verbs: FleetVerbs
  readonly outage: Outage
}

/** Calls to the store; while it cannot be reached what the caller chose for an outage. */
export class StoreOrOutage {
  private readonly asked: () => Asked

  constructor(asked: () => Asked) {
    this.asked = asked
  }

  /** One atomic call. */
  take(key: Key, cost: number): Promise<Decision> {
    return this.unlessOut(this.asked().verbs.take(key, cost), () => this.without(key, cost))
  }

  peek(key: Key, cost: number): Promise<Decision> {
    const { verbs, outage } = this.asked()
    return this.unlessOut(verbs.peek(key, cost), () => outage.peek(key, cost, this.pausedMs(key)))
  }

  /** A take of what is left to those who cannot reach the store. */
  without(key: Key, cost: number): Decision {
    return this.asked().outage.take(key, cost, this.pausedMs(key))
  }

  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.asked().outage.wait(request, this.pausedMs(request.key))
  }

  unlessOut<Value>(answer: Promise<Value>, without: () => Value): Promise<Value> {
    return answer.catch((error) => {
      if (isOutage(error)) return without()
      throw error
    })
  }

  private pausedMs(key: Key): number {
    const { store } = this.asked()
    return typeof key === 'string' ? store.pausedMs(key) : Math.max(...key.map((own) => store.pausedMs(own)))
  }
}
