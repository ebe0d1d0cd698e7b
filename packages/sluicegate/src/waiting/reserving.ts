import { checkActualCost } from '../arguments.js'
import type { Decision } from '../decision.js'
import type { Key, Limiter } from '../limiter.js'
import { emptyReservation, type Reservation } from '../reservation.js'
import { Shown } from '../shown.js'
import { ownKey } from '../wait-options.js'
import type { Booking, BookingService } from './booking.js'

/** What reserving needs of a limiter. */
export interface ReservationService extends Pick<BookingService, 'book' | 'giveBack'>, Pick<Limiter, 'peek' | 'penalize'> {}

/** {@link Limiter.reserve} */
export function reserve(service: ReservationService, key: Key, cost: number): Reservation {
  const booking = service.book(ownKey(key), cost, Number.POSITIVE_INFINITY)
  return new BookedReservation(service, booking, booking.allowed ? service.peek(booking.key, 1) : booking.decision)
}

/** {@link Limiter.reserve} for a key with queued waiters: a reservation does not overtake them. */
export function reserveBehind(service: Pick<BookingService, 'refuse'> & Pick<Limiter, 'peek'>, key: Key, cost: number): Reservation {
  const own = ownKey(key)
  return emptyReservation(service.refuse(own, cost), () => service.peek(own, 1))
}

class BookedReservation extends Shown implements Reservation {
  readonly allowed: boolean
  readonly waitMs: number
  readonly decision: Decision
  private readonly service: ReservationService
  private readonly booking: Booking
  private isOpen: boolean

  constructor(service: ReservationService, booking: Booking, decision: Decision) {
    super()
    this.service = service
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
    if (actualCost > cost) return this.once(() => this.service.penalize(key, actualCost - cost))
    if (actualCost < cost) return this.once(() => this.service.giveBack(this.booking, cost - actualCost))
    return this.once(() => this.service.peek(key, 1))
  }

  cancel(): Decision {
    return this.once(() => this.service.giveBack(this.booking, this.booking.cost))
  }

  /** A change that throws has changed nothing and may be tried again. */
  private once(change: () => Decision): Decision {
    if (!this.isOpen) return this.service.peek(this.booking.key, 1)
    const decision = change()
    this.isOpen = false
    return decision
  }
}
