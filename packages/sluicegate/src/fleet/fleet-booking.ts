import { checkActualCost } from '../arguments.js'
import type { Decision } from '../decision.js'
import type { Key } from '../limiter.js'
import { Shown } from '../shown.js'
import type { FleetReservation } from './fleet-limiter.js'
import type { Booked, FleetVerbs } from './fleet-verbs.js'

/** What was booked in a store; without it, when the store could not be reached, a decision alone, of which nothing comes back. */
export class FleetBooking extends Shown implements FleetReservation {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: Decision
  private readonly verbs: FleetVerbs
  private readonly cameBack: () => void
  private booked: Booked | undefined
  private key: Key | undefined
  private last: Decision

  /** @param cameBack called when something of it was given back. */
  constructor(verbs: FleetVerbs, booked: Booked | Decision, cameBack: () => void) {
    super()
    this.verbs = verbs
    this.cameBack = cameBack
    const isBooked = 'decision' in booked
    this.decision = isBooked ? booked.decision : booked
    this.last = this.decision
    this.allowed = booked.allowed
    this.booked = isBooked && booked.allowed ? booked : undefined
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
      if (actualCost > cost) return this.verbs.penalize(key, actualCost - cost)
      return actualCost < cost ? this.giveBack(booked, cost - actualCost) : this.verbs.peek(key, 1)
    })
  }

  cancel(): Promise<Decision> {
    return this.once((booked) => this.giveBack(booked, booked.cost))
  }

  private async giveBack(booked: Booked, tokens: number): Promise<Decision> {
    const decision = await this.verbs.giveBack(booked, tokens)
    this.cameBack()
    return decision
  }

  /** A second call changes nothing, and answers as `peek` does. What rejects may have been done, and is not done again. */
  private async once(change: (booked: Booked) => Promise<Decision>): Promise<Decision> {
    const { booked } = this
    if (booked === undefined) return this.key === undefined ? this.last : this.verbs.peek(this.key, 1).catch(() => this.last)
    this.booked = undefined
    this.key = booked.key
    this.last = await change(booked)
    return this.last
  }
}
