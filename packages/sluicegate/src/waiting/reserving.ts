import type { Decision } from '../decision/decision.js'
import { ChargedReservation, type Reservation, uncharged } from '../decision/reservation.js'
import { ownKey } from '../key.js'
import type { Key, LimiterVerbs } from '../limiter.js'
import type { Policy } from '../policy/policy.js'

/** Tokens charged now for use at `atUs`; or the denial. */
export interface Booking<Answer extends Decision = Decision> {
  readonly key: Key
  readonly cost: number
  /** Whether they were charged. */
  readonly allowed: boolean
  /** The clock's reading at which it was asked for, microseconds since the Unix epoch. */
  readonly bookedUs: number
  /** When they may be spent, `bookedUs` or later; not allowed: when they could have been as far as is known, `Infinity` for never. */
  readonly atUs: number
  /** Not allowed: it may pass before `atUs`, because other callers may release tokens. */
  readonly maybeSooner: boolean
  /** Not allowed for another reason than spent tokens, such as a ban. */
  readonly isBlocked?: boolean
  /** Allowed: the answer of a take that passed, with what is left right after. Not allowed: that of a denied take of the same cost. */
  readonly decision: Answer
}

/**
 * What waiting and reserving need of a limiter. Each call is one atomic step in the limiter's store, read on the limiter's clock.
 * Misuse throws `PolicyError`, an outage or a closed limiter `StoreError`; then nothing was charged.
 */
export interface BookingService<Answer extends Decision = Decision> {
  /**
   * Charges `cost` at the earliest time at which it conforms, if that is within `mostMs` from now. What cannot be booked ahead
   * (`concurrency`, `allOf`, a blocked key) is charged only when it passes now.
   */
  book(key: Key, cost: number, mostMs: number): Booking<Answer>
  /** The answer for a booking whose time has come: what a take that passed now would say; a denial when the key was blocked meanwhile. */
  redeem(booking: Booking<Answer>): Answer
  /** Gives `tokens` of a booking back, as much as is safe (docs/waiting.md says how much). Answers as `peek` would. */
  giveBack(booking: Booking<Answer>, tokens: number): Decision
  /**
   * Takes a booking back before its time, in whole or not at all: whether the key owes nothing for it any more. Without this method and the
   * next, waiters keep the time that they booked.
   */
  unbook?(booking: Booking<Answer>): boolean
  /** Whether a booking whose time is not there may be for a sooner one if it is made anew. */
  isLate?(booking: Booking<Answer>): boolean
  /** The denial of a take that may not overtake waiters: `retryAfterMs` is at least 1, `Infinity` if it can never pass. */
  refuse(key: Key, cost: number): Answer
  /** The policy by which waiters book ahead, undefined where nothing is booked ahead. Without this method they book however far ahead. */
  bookedPolicy?(): Policy | undefined
}

/** What reserving needs of a limiter. */
export interface ReservationService
  extends Pick<BookingService, 'book' | 'giveBack'>,
    Pick<LimiterVerbs<Decision, 'now'>, 'peek' | 'penalize'> {
  /** Where a booking is settled whose key was carried to another limiter since, and what it is there; undefined: here. */
  movedTo?(booking: Booking): Moved | undefined
}

/** A booking in another limiter. */
export interface Moved {
  readonly service: Omit<ReservationService, 'book'>
  readonly booking: Booking
}

/** {@link LimiterVerbs.reserve}, at most `mostMs` ahead. */
export function reserve(service: ReservationService, key: Key, cost: number, mostMs = Number.POSITIVE_INFINITY): Reservation {
  const booking = service.book(ownKey(key), cost, mostMs)
  return reservationOf(service, booking, booking.allowed ? service.peek(booking.key, 1) : booking.decision)
}

/** {@link LimiterVerbs.reserve} for a key with queued waiters: a reservation does not overtake them. */
export function reserveBehind(
  service: Pick<BookingService, 'refuse'> & Pick<ReservationService, 'peek'>,
  key: Key,
  cost: number,
): Reservation {
  const own = ownKey(key)
  return uncharged(service.refuse(own, cost), () => service.peek(own, 1))
}

/** A booking in the hands of its taker. */
export function reservationOf<Answer extends Decision>(
  service: ReservationService,
  booking: Booking<Answer>,
  decision = booking.decision,
): Reservation<'now', Answer> {
  const { key, cost, allowed, atUs, bookedUs } = booking
  const now = (): Moved => service.movedTo?.(booking) ?? { service, booking }
  return new ChargedReservation<'now', Answer>(decision, allowed, Math.ceil((atUs - bookedUs) / 1000), cost, {
    giveBack(tokens) {
      const at = now()
      return at.service.giveBack(at.booking, tokens)
    },
    penalize: (tokens) => now().service.penalize(key, tokens),
    peek: () => now().service.peek(key, 1),
  })
}
