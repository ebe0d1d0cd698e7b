import { isPermit, type Permit } from '../decision/permit.js'
import { onceInProcess } from '../once-in-process.js'
import type { Policy } from '../policy/policy.js'
import type { Booking, BookingService } from '../waiting/reserving.js'

/** Reservations and permits of one worker that are remembered. Beyond that none can be given back: they flow back or end by their ttl. */
const MOST_HELD = 100_000
/** Entries checked for each new one, so that ended ones do not add up. */
const LOOKED_AT = 2

/** A reservation that may be cancelled, or a permit. */
interface Holding {
  booking?: Booking
  readonly permit?: Permit
  /** From then on nothing can be given back. */
  overUs: number
  readonly order: number
  readonly isWait?: boolean
}

/** A reservation of a wait. */
export interface BookedAhead {
  /** Replaced when it is booked anew. */
  booking: Booking
  /** Among those of all workers. */
  readonly order: number
}

const orders = /* @__PURE__ */ onceInProcess('orders of holdings', () => ({ last: 0 }))

/** The reservations and permits of one worker, by the ids of their requests. */
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

/** How many leases of one worker are remembered, and for how long: beyond that their tokens cannot be returned. */
const MOST_LEASES = 10_000
const LONGEST_US = 60_000_000

/** A lease: the limiter that granted it, the policy then in force, and what it booked. */
interface GrantedLease {
  readonly service: Pick<BookingService, 'giveBack'>
  readonly policy: Policy
  readonly bookings: readonly Booking[]
  /** Tokens of a rate: what a take has spent of them comes back as far as it has not flowed back since. */
  readonly flowsBack: boolean
}

/** A lease that is remembered. */
interface HeldLease extends GrantedLease {
  /** Tokens that may be returned. */
  tokens: number
  readonly untilUs: number
}

/** The leases granted to one worker, by the ids of its requests: it can return no more than these. */
export class GrantedLeases {
  private readonly byId = new Map<number, HeldLease>()

  has(id: number): boolean {
    return this.byId.has(id)
  }

  add(id: number, { service, policy, bookings, flowsBack }: GrantedLease, nowUs: number): void {
    const { byId } = this
    for (const [oldId, { untilUs }] of byId) {
      if (untilUs > nowUs && byId.size < MOST_LEASES) break
      byId.delete(oldId)
    }
    const tokens = bookings.reduce((sum, { cost }) => sum + cost, 0)
    if (tokens === 0) return
    // Of a rate the first booking says all: when the tokens were charged.
    const kept = flowsBack ? bookings.slice(0, 1) : bookings
    byId.set(id, { service, policy, bookings: kept, flowsBack, tokens, untilUs: nowUs + LONGEST_US })
  }

  /**
   * Returns `tokens` of `cost` that one take has spent, or that no take has. Each is cancelled like a reservation: with a window only while
   * that is current, with a log only while it is the newest; of a rate what has not flowed back since the lease.
   *
   * @param policy the one in force: tokens granted under another are not returned.
   */
  giveBack(id: unknown, tokens: number, cost: number, policy: Policy): void {
    const lease = this.byId.get(id as number)
    if (lease === undefined || lease.policy !== policy) return
    let left = Math.min(tokens, lease.tokens)
    lease.tokens -= left
    if (lease.flowsBack) {
      const booking = lease.bookings[0] as Booking
      if (left > 0) lease.service.giveBack({ ...booking, cost, atUs: booking.bookedUs }, left)
      return
    }
    for (const booking of [...lease.bookings].reverse()) {
      if (left === 0) break
      const back = Math.min(left, booking.cost)
      lease.service.giveBack(booking, back)
      left -= back
    }
  }
}
