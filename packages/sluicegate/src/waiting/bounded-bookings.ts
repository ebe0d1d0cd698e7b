import type { Decision } from '../decision.js'
import { nameOf } from '../key-name.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Alarm } from './alarm.js'
import type { Booking, BookingDesk } from './booking.js'
import { BookingHorizon } from './booking-horizon.js'
import { Restraint } from './restraint.js'

/** What those who wait may book: see {@link BookingHorizon} and {@link Restraint}. */
export class BoundedBookings<Answer extends Decision> {
  private readonly desk: BookingDesk<Answer>
  private readonly alarm: Alarm
  private readonly restraint = new Restraint()
  private policy: Policy | undefined
  private known: BookingHorizon | undefined

  constructor(desk: BookingDesk<Answer>, alarm: Alarm) {
    this.desk = desk
    this.alarm = alarm
  }

  /** {@link BookingDesk.book}, no further ahead than waiters may. */
  book(key: Key, cost: number, mostMs: number): Booking<Answer> {
    const horizon = this.horizon()
    if (horizon === undefined || mostMs === 0) return this.desk.book(key, cost, mostMs)
    const nowUs = this.alarm.nowUs()
    const isRestrained = this.restraint.holds(nameOf(key), nowUs)
    return this.desk.book(key, cost, isRestrained ? 0 : Math.min(mostMs, horizon.aheadUs(nowUs) / 1000))
  }

  /** When whoever was denied is to ask again: when its tokens can be booked, else when they can be spent. */
  askAgainUs({ key, atUs, bookedUs }: Booking<Answer>): number {
    const horizon = this.horizon()
    const isBookable = horizon !== undefined && atUs < Number.POSITIVE_INFINITY && !this.restraint.holds(nameOf(key), bookedUs)
    const askUs = isBookable ? horizon.bookableUs(atUs) : atUs
    // Denied although it was near enough, as of a blocked key.
    return askUs > bookedUs ? askUs : Math.max(atUs, bookedUs + 1)
  }

  /** The earliest reading at which so many tokens can all have passed, of which the first were denied by `first`. */
  allPassedUs(first: Booking<Answer>, tokens: number): number {
    if (first.isBlocked) return first.bookedUs
    return this.horizon()?.allPassedUs(first.atUs, first.cost, tokens) ?? first.bookedUs
  }

  /** Gives back what nobody waits for any more. */
  giveUp(booking: Booking<Answer>, cost: number): void {
    const { allowed } = this.desk.giveBack(booking, cost)
    if (allowed || this.horizon() === undefined) return
    const nowUs = this.alarm.nowUs()
    if (booking.atUs > nowUs) this.restraint.add(nameOf(booking.key), nowUs, booking.atUs)
  }

  private horizon(): BookingHorizon | undefined {
    const policy = this.desk.bookedPolicy?.()
    if (policy === undefined) return undefined
    if (policy !== this.policy) {
      this.policy = policy
      this.known = new BookingHorizon(policy)
    }
    return this.known
  }
}
