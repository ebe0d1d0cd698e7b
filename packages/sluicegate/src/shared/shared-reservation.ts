import { checkActualCost } from '../arguments.js'
import type { Decision } from '../decision.js'
import { Shown } from '../shown.js'
import { type Backend, type Booked, decisionOf, type Operation } from './backend.js'
import type { FleetReservation } from './fleet-limiter.js'

/** A reservation at a backend. One that was decided in an outage holds nothing there: nothing of it comes back. */
export class SharedReservation extends Shown implements FleetReservation {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: Decision
  private readonly backend: Backend
  private readonly cameBack: () => void
  private booked: Booked | undefined
  private wasBooked = false
  private readonly key: Booked['key']
  private last: Decision

  /** @param cameBack called after tokens were returned. */
  constructor(backend: Backend, booked: Booked, cameBack: () => void) {
    super()
    this.backend = backend
    this.cameBack = cameBack
    this.key = booked.key
    this.decision = booked.decision
    this.last = this.decision
    this.allowed = booked.allowed
    this.booked = booked.allowed && booked.decision.source !== 'outage' ? booked : undefined
    this.waitMs = this.booked === undefined ? this.decision.retryAfterMs : Math.ceil(this.booked.waitUs / 1000)
  }

  toJSON(): object {
    const { allowed, waitMs, decision } = this
    return { allowed, waitMs, decision }
  }

  async settle(actualCost: number): Promise<Decision> {
    checkActualCost(actualCost)
    return this.once((booked) => {
      const { key, cost } = booked
      if (actualCost > cost) return this.executed({ verb: 'penalize', key, tokens: actualCost - cost })
      return actualCost < cost ? this.giveBack(booked, cost - actualCost) : this.executed({ verb: 'peek', key, cost: 1 })
    })
  }

  cancel(): Promise<Decision> {
    return this.once((booked) => this.giveBack(booked, booked.cost))
  }

  private async giveBack(booked: Booked, tokens: number): Promise<Decision> {
    const decision = await this.executed({ verb: 'cancel', key: booked.key, booked, tokens })
    this.cameBack()
    return decision
  }

  /** A second call changes nothing and answers as `peek` does. A change that rejects may have been made and is not repeated. */
  private async once(change: (booked: Booked) => Promise<Decision>): Promise<Decision> {
    const { booked } = this
    if (booked === undefined) {
      return this.wasBooked ? this.executed({ verb: 'peek', key: this.key, cost: 1 }).catch(() => this.last) : this.last
    }
    this.booked = undefined
    this.wasBooked = true
    this.last = await change(booked)
    return this.last
  }

  private executed(operation: Operation): Promise<Decision> {
    return this.backend.execute(operation).then(decisionOf)
  }
}
