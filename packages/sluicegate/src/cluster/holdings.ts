import { isPermit, type Permit } from '../decision/permit.js'
import { onceInProcess } from '../once-in-process.js'
import type { Policy } from '../policy/policy.js'
import type { Booking } from '../waiting/reserving.js'

/** What is remembered of one process. Beyond that nothing can be given back: it flows back or ends by its ttl. */
const MOST_HELD = 100_000
/** How long the tokens of a lease may come back. */
const LEASED_US = 60_000_000
/** Entries checked for each new one, so that ended ones do not add up. */
const LOOKED_AT = 2

/** A reservation that may be cancelled, a permit, or a lease whose tokens may be returned. */
interface Holding {
  booking?: Booking
  readonly permit?: Permit
  readonly lease?: Lease
  /** From then on nothing can be given back. */
  overUs: number
  readonly order: number
  readonly isWait?: boolean
}

/** Of a lease: how many of its tokens may still be returned, and what was in force. */
interface Lease {
  /** The whole policy, and which one of `allOf`; else 0. */
  readonly policy: Policy
  readonly part: number
  /** Tokens of a rate: what a take has spent of them comes back as far as it has not flowed back since. */
  readonly flowsBack: boolean
  left: number
}

/** Tokens of a booking that go back. */
export interface GivenBack {
  readonly booking: Booking
  readonly tokens: number
}

/** A reservation of a wait. */
export interface BookedAhead {
  /** Replaced when it is booked anew. */
  booking: Booking
  /** Among those of all workers. */
  readonly order: number
}

const orders = /* @__PURE__ */ onceInProcess('orders of holdings', () => ({ last: 0 }))

/** What was granted to one process, by the ids of its requests: it can give back no more than this. */
export class Holdings {
  private readonly byId = new Map<number, Holding>()
  /** Kept between calls: a new iterator would pass the place of every deleted entry again. */
  private sweep = this.byId.entries()
  private readonly policy: () => Policy

  /** @param policy the one in force. */
  constructor(policy: () => Policy) {
    this.policy = policy
  }

  addPermit(id: number, permit: Permit, nowUs: number): void {
    this.add(id, { permit, overUs: nowUs + lifeUs(this.policy()), order: ++orders.last }, nowUs)
  }

  /** @param isWait whether it may be made anew, for another time. */
  addBooking(id: number, booking: Booking, nowUs: number, isWait = false): void {
    const { decision, atUs } = booking
    const overUs = atUs + lifeUs(this.policy())
    this.add(id, { booking, ...(isPermit(decision) && { permit: decision }), overUs, order: ++orders.last, isWait }, nowUs)
  }

  addLease(id: number, booking: Booking, lease: Omit<Lease, 'left'>, nowUs: number): void {
    const overUs = nowUs + LEASED_US
    this.add(id, { booking, lease: { ...lease, left: booking.cost }, overUs, order: ++orders.last }, nowUs)
  }

  isLease(id: unknown): boolean {
    return this.byId.get(id as number)?.lease !== undefined
  }

  /**
   * `tokens` of a lease go back: of `cost` that one take has spent, or that no take has. They do like those of a reservation: with a window
   * only while that is current, with a log only while it is the newest; of a rate what has not flowed back since the lease. Undefined when
   * nothing does.
   *
   * @param policy the one in force: nothing comes back of what was leased under another.
   */
  takeBack(id: unknown, tokens: number, cost: number, policy: Policy): (GivenBack & { readonly part: number }) | undefined {
    const { booking, lease } = this.byId.get(id as number) ?? {}
    if (booking === undefined || lease === undefined || lease.policy !== policy) return undefined
    const back = Math.min(tokens, lease.left)
    if (back === 0) return undefined
    lease.left -= back
    const { part, flowsBack } = lease
    return { booking: flowsBack ? { ...booking, cost, atUs: booking.bookedUs } : booking, tokens: back, part }
  }

  booking(id: unknown): Booking | undefined {
    return this.byId.get(id as number)?.booking
  }

  permit(id: unknown): Permit | undefined {
    return this.byId.get(id as number)?.permit
  }

  /** A permit was renewed. */
  renew(id: unknown, nowUs: number): void {
    const holding = this.byId.get(id as number)
    if (holding !== undefined) holding.overUs = nowUs + lifeUs(this.policy())
  }

  drop(id: unknown): void {
    this.byId.delete(id as number)
  }

  /** Those of waits whose time has not come. */
  ahead(nowUs: number): readonly BookedAhead[] {
    return [...this.byId.values()].filter(
      (holding): holding is Holding & BookedAhead => holding.isWait === true && (holding.booking?.atUs ?? 0) > nowUs,
    )
  }

  /** All entries, the latest first (ids grow): only the latest reservation comes back in full. */
  *latestFirst(): Generator<Pick<Holding, 'booking' | 'permit'>> {
    const latestFirst = [...this.byId].sort(([id], [other]) => other - id)
    this.byId.clear()
    for (const [, holding] of latestFirst) yield holding
  }

  private add(id: number, holding: Holding, nowUs: number): void {
    for (let i = 0; i < LOOKED_AT && this.byId.size > 0; i++) {
      const [oldId, old] = this.next()
      if (old.overUs <= nowUs) this.byId.delete(oldId)
    }
    if (this.byId.size < MOST_HELD) this.byId.set(id, holding)
  }

  /** The entry after the one checked last, or the first. There is one. */
  private next(): readonly [number, Holding] {
    const { done, value } = this.sweep.next()
    if (done !== true) return value
    this.sweep = this.byId.entries()
    return this.sweep.next().value as [number, Holding]
  }
}

/** After this long nothing of a request counts. */
function lifeUs({ policies, algorithm, limit, windowMs, burst }: Policy): number {
  if (policies !== undefined) return Math.max(...policies.map(lifeUs))
  const isRate = algorithm === 'token-bucket' || algorithm === 'gcra'
  return Math.ceil((isRate ? (burst * windowMs) / limit : 2 * windowMs) * 1000)
}
