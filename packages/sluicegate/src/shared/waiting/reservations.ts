import { checkActualCost, type WaitRequest } from '../../arguments.js'
import { type Decision, refusal } from '../../decision/decision.js'
import { holdsPermits } from '../../decision/permit.js'
import type { Reservation } from '../../decision/reservation.js'
import { isOutage } from '../../errors.js'
import { surelyUs } from '../../lease/leasing.js'
import type { Key } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { ShownReservation } from '../../shown.js'
import {
  type Answer,
  type Backend,
  type Booked,
  bookedBy,
  canComeBack,
  decisionOf,
  giveAllBack,
  newOperationId,
  type Operation,
  passed,
} from '../backend.js'
import { type SharedParts, withPermit } from '../shared-parts.js'
import { SharedPermit } from '../shared-permit.js'
import type { ChargedAccount } from './shared-receipt.js'

/** Tokens reserved at the backend of the policy in force, and what their taker gets when their time has come. */
export class Reservations {
  private readonly current: () => SharedParts

  constructor(current: () => SharedParts) {
    this.current = current
  }

  get policy(): Policy {
    return this.current().policy
  }

  /** Charges `cost` at the earliest time, within `maxWaitMs`. Rejects with `OUTAGE`. */
  async reserve(key: Key, cost: number, maxWaitMs: number): Promise<Booked> {
    const operation = { verb: 'reserve', key, cost, id: newOperationId(), maxWaitUs: maxWaitMs * 1000 } as const
    return bookedBy(operation, await this.current().backend.execute(operation))
  }

  /**
   * A take that passed, unless the key was banned meanwhile; then the tokens go back. Undefined when `sinceMs` after it was asked for the
   * reservation came too late to be spent.
   */
  async redeem(booked: Booked, sinceMs: number): Promise<Decision | undefined> {
    const parts = this.current()
    const { key, decision, waitUs } = booked
    // A process that was stopped has slept too long: its token has expired, as a leased one would have.
    if (parts.leases !== undefined && sinceMs * 1000 > waitUs + surelyUs(parts.leaseUs)) return undefined
    if (waitUs === 0) return withPermit(parts, passed(decision), booked)
    let answer: Answer
    try {
      answer = await parts.backend.execute({ verb: 'redeem', key, charge: booked })
    } catch (error) {
      // Reserved and paid for: a taker that took the same tokens elsewhere would spend them twice.
      if (isOutage(error)) return passed(decision)
      throw error
    }
    if (answer.done) return passed(decisionOf(answer))
    // The ban is known: what goes back without an answer changes nothing about it.
    await parts.backend.execute({ verb: 'giveBack', key, charge: booked, tokens: booked.cost }).catch(unlessOutage)
    return decisionOf(answer)
  }

  /** Cancels a reservation soon, together with others that are not wanted. */
  discard(booked: Booked, onFreed: () => void): void {
    const { guard, backend } = this.current()
    guard.unwanted.collect(booked.key, booked.order, () => backend.execute(giveAllBack(booked)).then(onFreed))
  }

  /** Cancels a reservation at the backend in force now. */
  discardNow(booked: Booked): Promise<unknown> {
    return this.current().backend.execute(giveAllBack(booked))
  }

  /** Cancellations of the key's reservations that are under way, for as long as a call may take; undefined without any. */
  freeing(key: Key): Promise<unknown> | undefined {
    return this.current().guard.unwanted.pending(key)
  }

  /** Milliseconds until a newcomer would pass. Rejects with `OUTAGE`. */
  async untilFreeMs(key: Key, cost: number): Promise<number> {
    return decisionOf(await this.current().backend.execute({ verb: 'peek', key, cost })).retryAfterMs
  }

  get timeoutMs(): number {
    return this.current().guard.timeoutMs
  }

  /** A denial. */
  refuse(decision: Decision): Decision {
    const denied = refusal(decision)
    return holdsPermits(this.policy) ? new SharedPermit(denied) : denied
  }

  /** The denial of a request that must not overtake those in the queue. */
  async deny(key: Key, cost: number): Promise<Decision> {
    return this.refuse(decisionOf(await this.current().fallback.execute({ verb: 'peek', key, cost })))
  }

  /** Waits for what is decided during an outage. */
  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.current().fallback.waitWithout(request)
  }
}

function unlessOutage(error: unknown): void {
  if (!isOutage(error)) throw error
}

/** A reservation at a backend. One that was decided in an outage holds nothing there: nothing of it comes back. */
export class SharedReservation extends ShownReservation<Decision> implements Reservation<'later'> {
  private readonly backend: Backend
  private readonly account: ChargedAccount
  private booked: Booked | undefined
  private wasBooked = false
  private readonly key: Booked['key']
  private last: Decision

  /** @param account what the reservation has charged. */
  constructor(backend: Backend, booked: Booked, account: ChargedAccount) {
    const { key, allowed, waitUs, decision } = booked
    const isHeld = canComeBack(booked)
    super(allowed, isHeld ? Math.ceil(waitUs / 1000) : decision.retryAfterMs, decision)
    this.backend = backend
    this.account = account
    this.key = key
    this.last = decision
    this.booked = isHeld ? booked : undefined
  }

  async settle(actualCost: number): Promise<Decision> {
    checkActualCost(actualCost)
    return this.once((booked) => {
      const { key, cost } = booked
      if (actualCost > cost) return this.executed({ verb: 'penalize', key, tokens: actualCost - cost })
      return actualCost < cost ? this.giveBack(cost - actualCost) : this.executed({ verb: 'peek', key, cost: 1 })
    })
  }

  cancel(): Promise<Decision> {
    return this.once(({ cost }) => this.giveBack(cost))
  }

  private giveBack(tokens: number): Promise<Decision> {
    return this.account.giveBack(tokens) as Promise<Decision>
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
