import { isPermit, type Permit } from '../decision/permit.js'
import { onceInProcess } from '../once-in-process.js'
import { isRate, type Policy } from '../policy/policy.js'
import { KeptById } from '../shared/kept-by-id.js'
import type { Booking } from '../waiting/reserving.js'

/** What is remembered of one process. Beyond that nothing can be given back: it flows back or ends by its ttl. */
const MOST_HELD = 100_000
/** How long the tokens of a lease may come back. */
const LEASED_US = 60_000_000

/** A reservation that may be cancelled, a permit, or a lease whose tokens may be returned. */
interface Holding {
  booking?: Booking
  readonly permit?: Permit
  readonly lease?: Lease
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
  private readonly byId = new KeptById<Holding>(MOST_HELD)
  private readonly policy: () => Policy

  /** @param policy the one in force. */
  constructor(policy: () => Policy) {
    this.policy = policy
  }

  addPermit(id: number, permit: Permit, nowUs: number): void {
    this.byId.set(id, { permit, order: ++orders.last }, nowUs + lifeUs(this.policy()), nowUs)
  }

  /** @param isWait whether it may be made anew, for another time. */
  addBooking(id: number, booking: Booking, nowUs: number, isWait = false): void {
    const { decision, atUs } = booking
    const permit = isPermit(decision) && { permit: decision }
    this.byId.set(id, { booking, ...permit, order: ++orders.last, isWait }, atUs + lifeUs(this.policy()), nowUs)
  }

  addLease(id: number, booking: Booking, lease: Omit<Lease, 'left'>, nowUs: number): void {
    this.byId.set(id, { booking, lease: { ...lease, left: booking.cost }, order: ++orders.last }, nowUs + LEASED_US, nowUs)
  }

  isLease(id: unknown): boolean {
    return this.byId.get(id)?.lease !== undefined
  }

  /**
   * `tokens` of a lease go back: of `cost` that one take has spent, or that no take has. They do like those of a reservation: with a window
   * only while that is current, with a log only while it is the newest; of a rate what has not flowed back since the lease. Undefined when
   * nothing does.
   *
   * @param policy the one in force: nothing comes back of what was leased under another.
   */
  takeBack(
    id: unknown,
    tokens: number,
    cost: number,
    policy: Policy,
  ): { readonly booking: Booking; readonly tokens: number; readonly part: number } | undefined {
    const { booking, lease } = this.byId.get(id) ?? {}
    if (booking === undefined || lease === undefined || lease.policy !== policy) return undefined
    const back = Math.min(tokens, lease.left)
    if (back === 0) return undefined
    lease.left -= back
    const { part, flowsBack } = lease
    return { booking: flowsBack ? { ...booking, cost, atUs: booking.bookedUs } : booking, tokens: back, part }
  }

  /** Of a reservation. */
  booking(id: unknown): Booking | undefined {
    const { booking, lease } = this.byId.get(id) ?? {}
    return lease === undefined ? booking : undefined
  }

  permit(id: unknown): Permit | undefined {
    return this.byId.get(id)?.permit
  }

  /** A permit was renewed. */
  renew(id: unknown, nowUs: number): void {
    this.byId.prolong(id, nowUs + lifeUs(this.policy()))
  }

  drop(id: unknown): void {
    this.byId.delete(id)
  }

  /** Those of waits whose time has not come. */
  ahead(nowUs: number): readonly BookedAhead[] {
    const isAhead = (holding: Holding): holding is Holding & BookedAhead => holding.isWait === true && (holding.booking?.atUs ?? 0) > nowUs
    return this.byId.values().filter(isAhead)
  }

  /** All, the latest first (ids grow): only the latest reservation comes back in full. None is left. */
  takeLatestFirst(): readonly Pick<Holding, 'booking' | 'permit'>[] {
    return this.byId.takeLatestFirst()
  }
}

/** After this long nothing of a request counts. */
function lifeUs(policy: Policy): number {
  const { policies, limit, windowMs, burst } = policy
  if (policies !== undefined) return Math.max(...policies.map(lifeUs))
  return Math.ceil((isRate(policy) ? (burst * windowMs) / limit : 2 * windowMs) * 1000)
}
