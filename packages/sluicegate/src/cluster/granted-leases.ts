import type { Policy } from '../policy/policy.js'
import type { Booking, BookingService } from '../waiting/booking.js'

/** How many leases of one worker are remembered, and for how long: beyond that their tokens cannot be returned. */
const MOST_LENT = 10_000
const LONGEST_US = 60_000_000

/** A lease, the limiter that granted it, and the policy then in force. */
interface Loan {
  readonly service: Pick<BookingService, 'giveBack'>
  readonly policy: Policy
  readonly bookings: readonly Booking[]
  /** Tokens that may be returned. */
  tokens: number
  readonly untilUs: number
}

/** The leases granted to one worker, by the ids of its requests: it can return no more than these. */
export class GrantedLeases {
  private readonly byId = new Map<number, Loan>()

  add(id: number, service: Pick<BookingService, 'giveBack'>, policy: Policy, bookings: readonly Booking[], nowUs: number): void {
    const { byId } = this
    for (const [oldId, { untilUs }] of byId) {
      if (untilUs > nowUs && byId.size < MOST_LENT) break
      byId.delete(oldId)
    }
    const tokens = bookings.reduce((sum, { cost }) => sum + cost, 0)
    if (tokens > 0) byId.set(id, { service, policy, bookings, tokens, untilUs: nowUs + LONGEST_US })
  }

  /**
   * Returns tokens, the last granted first. Each is cancelled like a reservation: with a window only while that is current, with a log only
   * while it is the newest.
   *
   * @param policy the one in force: tokens granted under another are not returned.
   */
  giveBack(id: unknown, tokens: number, policy: Policy): void {
    const loan = this.byId.get(id as number)
    if (loan === undefined || loan.policy !== policy) return
    let left = Math.min(tokens, loan.tokens)
    loan.tokens -= left
    for (const booking of [...loan.bookings].reverse()) {
      if (left === 0) break
      const back = Math.min(left, booking.cost)
      loan.service.giveBack(booking, back)
      left -= back
    }
  }
}
