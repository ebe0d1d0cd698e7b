import type { WaitRequest } from '../../arguments.js'
import { type Decision, refusal } from '../../decision/decision.js'
import { holdsPermits } from '../../decision/permit.js'
import { isOutage } from '../../errors.js'
import { surelyUs } from '../../lease/leasing.js'
import type { Key } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { type Answer, type Booked, bookedBy, decisionOf, giveAllBack, newOperationId, passed } from '../backend.js'
import { type PolicyInForce, withPermit } from '../policy-in-force.js'
import { SharedPermit } from '../shared-permit.js'

/** Tokens reserved at the backend of the policy in force, and what their taker gets when their time has come. */
export class Reservations {
  private readonly inForce: PolicyInForce

  constructor(inForce: PolicyInForce) {
    this.inForce = inForce
  }

  get policy(): Policy {
    return this.inForce.parts.policy
  }

  /** Charges `cost` at the earliest time, within `maxWaitMs`. Rejects with `OUTAGE`. */
  async reserve(key: Key, cost: number, maxWaitMs: number): Promise<Booked> {
    const operation = { verb: 'reserve', key, cost, id: newOperationId(), maxWaitUs: maxWaitMs * 1000, isWait: true } as const
    return bookedBy(operation, await this.inForce.parts.backend.execute(operation))
  }

  /**
   * A take that passed, unless the key was banned meanwhile; then the tokens go back. Undefined when `sinceMs` after it was asked for the
   * reservation came too late to be spent.
   */
  async redeem(booked: Booked, sinceMs: number): Promise<Decision | undefined> {
    const parts = this.inForce.parts
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
    const { guard, backend } = this.inForce.parts
    guard.unwanted.collect(booked.key, booked.order, () => backend.execute(giveAllBack(booked)).then(onFreed))
  }

  /** Cancels a reservation at the backend in force now. */
  discardNow(booked: Booked): Promise<unknown> {
    return this.inForce.parts.backend.execute(giveAllBack(booked))
  }

  /** Cancellations of the key's reservations that are under way, for as long as a call may take; undefined without any. */
  freeing(key: Key): Promise<unknown> | undefined {
    return this.inForce.parts.guard.unwanted.pending(key)
  }

  /** Milliseconds until a newcomer would pass whose tokens nobody holds ahead of need; unknown, and so never, during an outage. Rejects with `OUTAGE`. */
  async untilFreeMs(key: Key, cost: number): Promise<number> {
    const { source, retryAfterMs } = decisionOf(await this.inForce.parts.backend.execute({ verb: 'peek', key, cost, isAtHome: true }))
    return source === 'outage' ? Number.POSITIVE_INFINITY : retryAfterMs
  }

  get timeoutMs(): number {
    return this.inForce.parts.guard.timeoutMs
  }

  /** A denial. */
  refuse(decision: Decision): Decision {
    const denied = refusal(decision)
    return holdsPermits(this.policy) ? new SharedPermit(denied) : denied
  }

  /** The denial of a request that must not overtake those in the queue. */
  async deny(key: Key, cost: number): Promise<Decision> {
    return this.refuse(await this.denial(key, cost))
  }

  /** A reservation that must not overtake them: none, and nothing is charged. */
  async denyBooking({ key, cost, id }: Pick<Booked, 'key' | 'cost' | 'id'>): Promise<Booked> {
    return { key, cost, id, allowed: false, waitUs: 0, order: 0, decision: refusal(await this.denial(key, cost)) }
  }

  private async denial(key: Key, cost: number): Promise<Decision> {
    return decisionOf(await this.inForce.parts.fallback.execute({ verb: 'peek', key, cost }))
  }

  /** Waits for what is decided during an outage. */
  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.inForce.parts.fallback.waitWithout(request)
  }
}

function unlessOutage(error: unknown): void {
  if (!isOutage(error)) throw error
}
