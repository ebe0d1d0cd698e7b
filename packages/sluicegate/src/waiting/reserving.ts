import { checkActualCost } from '../arguments.js'
import type { Decision } from '../decision.js'
import { emptyReservation } from '../empty-reservation.js'
import type { Key, Limiter } from '../limiter.js'
import type { Reservation } from '../reservation.js'
import { Shown } from '../shown.js'
import { ownKey } from '../wait-request.js'
import type { Booking, BookingDesk } from './booking.js'

/** What reserving needs of a limiter. */
export interface ReservationDesk extends Pick<BookingDesk, 'book' | 'giveBack'>, Pick<Limiter, 'peek' | 'penalize'> {}

/** {@link Limiter.reserve} */
export function reserve(desk: ReservationDesk, key: Key, cost: number): Reservation {
  const booking = desk.book(ownKey(key), cost, Number.POSITIVE_INFINITY)
  return new BookedReservation(desk, booking, booking.allowed ? desk.peek(booking.key, 1) : booking.decision)
}

/** The same for a key for which others stand in line: nothing is reserved past them. */
export function reserveBehind(desk: Pick<BookingDesk, 'refuse'> & Pick<Limiter, 'peek'>, key: Key, cost: number): Reservation {
  const own = ownKey(key)
  return emptyReservation(desk.refuse(own, cost), () => desk.peek(own, 1))
}

class BookedReservation extends Shown implements Reservation {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: Decision
  private readonly desk: ReservationDesk
  private readonly booking: Booking
  private isOpen: boolean

  constructor(desk: ReservationDesk, booking: Booking, decision: Decision) {
    super()
    this.desk = desk
    this.booking = booking
    this.allowed = booking.allowed
    this.waitMs = Math.ceil((booking.atUs - booking.bookedUs) / 1000)
    this.decision = decision
    this.isOpen = booking.allowed
  }

  toJSON(): object {
    const { allowed, waitMs, decision } = this
    return { allowed, waitMs, decision }
  }

  settle(actualCost: number): Decision {
    checkActualCost(actualCost)
    const { key, cost } = this.booking
    if (actualCost > cost) return this.once(() => this.desk.penalize(key, actualCost - cost))
    if (actualCost < cost) return this.once(() => this.desk.giveBack(this.booking, cost - actualCost))
    return this.once(() => this.desk.peek(key, 1))
  }

  cancel(): Decision {
    return this.once(() => this.desk.giveBack(this.booking, this.booking.cost))
  }

  /** What throws has changed nothing, and may be tried again. */
  private once(change: () => Decision): Decision {
    if (!this.isOpen) return this.desk.peek(this.booking.key, 1)
    const decision = change()
    this.isOpen = false
    return decision
  }
}
