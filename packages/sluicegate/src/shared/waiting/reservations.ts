import type { WaitRequest } from '../../arguments.js'
import { type Decision, refusal } from '../../decision/decision.js'
import { holdsPermits } from '../../decision/permit.js'
import { isOutage } from '../../errors.js'
import { surelyUs } from '../../lease/leasing.js'
import type { Key } from '../../limiter.js'
import { isRate, type Policy, policiesOf } from '../../policy/policy.js'
import { type Answer, decisionOf, giveAllBack, newOperationId, passed, type Reserved, reservedBy } from '../backend.js'
import type { PolicyInForce } from '../policy-in-force.js'
import { SharedPermit, withPermit } from '../shared-permit.js'

/** What waits of a key: tokens, until the first of it has asked again, and until the last of it has given up. */
export interface QueueAhead {
  readonly tokens: number
  readonly nextMs: number
  readonly lastMs: number
}

/** Tokens reserved at the backend of the policy in force, and what their taker gets when their time has come. */
export class Reservations {
  private readonly inForce: PolicyInForce

  constructor(inForce: PolicyInForce) {
    this.inForce = inForce
  }

  get policy(): Policy {
    return this.inForce.now.policy
  }

  /** Charges `cost` at the earliest time, within `maxWaitMs`. Rejects with `OUTAGE`. */
  async reserve(key: Key, cost: number, maxWaitMs: number): Promise<Reserved> {
    const operation = { verb: 'reserve', key, cost, id: newOperationId(), maxWaitUs: maxWaitMs * 1000, isWait: true } as const
    return reservedBy(operation, await this.inForce.now.backend.execute(operation))
  }

  /**
   * A take that passed, unless the key was banned meanwhile; then the tokens go back. Undefined when `sinceMs` after it was asked for the
   * reservation came too late to be spent.
   */
  async redeem(reserved: Reserved, sinceMs: number): Promise<Decision | undefined> {
    const now = this.inForce.now
    const { key, decision, waitUs } = reserved
    // A process that was stopped has slept too long: its token has expired, as a leased one would have.
    if (now.leases !== undefined && sinceMs * 1000 > waitUs + surelyUs(now.leaseUs)) return undefined
    if (waitUs === 0) return withPermit(now, passed(decision), reserved)
    let answer: Answer
    try {
      answer = await now.backend.execute({ verb: 'redeem', key, charge: reserved })
    } catch (error) {
      // Reserved and paid for: a taker that took the same tokens elsewhere would spend them twice.
      if (isOutage(error)) return passed(decision)
      throw error
    }
    if (answer.done) return passed(decisionOf(answer))
    // The ban is known: what goes back without an answer changes nothing about it.
    await now.backend.execute({ verb: 'giveBack', key, charge: reserved, tokens: reserved.cost }).catch(unlessOutage)
    return decisionOf(answer)
  }

  /** Cancels a reservation soon, together with others that are not wanted. */
  discard(reserved: Reserved, onFreed: () => void): void {
    const { guard, backend } = this.inForce.now
    guard.unwanted.collect(reserved.key, reserved.order, () => backend.execute(giveAllBack(reserved)).then(onFreed))
  }

  /** Cancels a reservation at the backend in force now. */
  discardNow(reserved: Reserved): Promise<unknown> {
    return this.inForce.now.backend.execute(giveAllBack(reserved))
  }

  /** Cancellations of the key's reservations that are under way, for as long as a call may take; undefined without any. */
  freeing(key: Key): Promise<unknown> | undefined {
    return this.inForce.now.guard.unwanted.pending(key)
  }

  /** Milliseconds until a newcomer would pass whose tokens nobody holds ahead of need; unknown, and so never, during an outage. Rejects with `OUTAGE`. */
  async untilFreeMs(key: Key, cost: number): Promise<number> {
    const { source, retryAfterMs } = decisionOf(await this.inForce.now.backend.execute({ verb: 'peek', key, cost, isAtHome: true }))
    return source === 'outage' ? Number.POSITIVE_INFINITY : retryAfterMs
  }

  get timeoutMs(): number {
    return this.inForce.now.guard.timeoutMs
  }

  /** A denial. */
  refuse(decision: Decision): Decision {
    const denied = refusal(decision)
    return holdsPermits(this.policy) ? new SharedPermit(denied) : denied
  }

  /** The denial of a request that must not overtake those in the queue. @param ahead what these have before it. */
  async deny(key: Key, cost: number, ahead?: QueueAhead): Promise<Decision> {
    return this.refuse(await this.denial(key, cost, ahead))
  }

  /** A reservation that must not overtake them: none, and nothing is charged. */
  async denyReservation({ key, cost, id }: Pick<Reserved, 'key' | 'cost' | 'id'>, ahead: QueueAhead | undefined): Promise<Reserved> {
    return { key, cost, id, allowed: false, waitUs: 0, order: 0, decision: refusal(await this.denial(key, cost, ahead)) }
  }

  /** What those have before it who wait is not free until they have it or have given up. */
  private async denial(key: Key, cost: number, ahead: QueueAhead | undefined): Promise<Decision> {
    const { fallback } = this.inForce.now
    const seen = async (tokens: number): Promise<Decision> => decisionOf(await fallback.execute({ verb: 'peek', key, cost: tokens }))
    if (ahead === undefined) return seen(cost)
    const { tokens, nextMs, lastMs } = ahead
    const [own, all] = await Promise.all([seen(cost), seen(Math.min(cost + tokens, Number.MAX_SAFE_INTEGER))])
    // More than ever passes at once passes one after the other.
    const flowMs = Math.max(...policiesOf(this.policy).map((policy) => flowMsOf(policy, tokens, cost)))
    const deniedMs = all.retryAfterMs < Number.POSITIVE_INFINITY ? all.retryAfterMs : own.retryAfterMs + flowMs
    const allMs = all.allowed ? nextMs : deniedMs
    const retryAfterMs = Math.max(own.retryAfterMs, Math.min(allMs, lastMs))
    return { ...(own.allowed ? all : own), retryAfterMs: Math.ceil(retryAfterMs) }
  }

  /** Whether a wait in an outage is for a share, and may be for the store. */
  get waitsInOutage(): boolean {
    return this.inForce.now.outage.mode === 'local'
  }

  /** Waits for what is decided during an outage. */
  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.inForce.now.fallback.waitWithout(request)
  }
}

/** How long tokens take that pass before `cost`, from when that would pass by itself. */
function flowMsOf(policy: Policy, tokens: number, cost: number): number {
  const { limit, windowMs } = policy
  return isRate(policy) ? (tokens * windowMs) / limit : Math.floor((tokens + cost - 1) / limit) * windowMs
}

function unlessOutage(error: unknown): void {
  if (!isOutage(error)) throw error
}
