import type { Policy } from '../policy/policy.js'
import type { Booking, BookingService } from '../waiting/booking.js'

/** So many leases of one worker are remembered, for so long: beyond that nothing of them comes back. */
const MOST_LENT = 10_000
const LONGEST_US = 60_000_000

/** The desk that lent tokens, under the policy that was in force. */
interface Loan {
  readonly desk: Pick<BookingService, 'giveBack'>
  readonly policy: Policy
  readonly bookings: readonly Booking[]
  /** What may come back. */
  tokens: number
  readonly untilUs: number
}

/** What was lent to one worker, by the ids of its questions: it gives back no more than that. */
export class GrantedLeases {
  private readonly byId = new Map<number, Loan>()

  add(id: number, desk: Pick<BookingService, 'giveBack'>, policy: Policy, bookings: readonly Booking[], nowUs: number): void {
    const { byId } = this
    for (const [oldId, { untilUs }] of byId) {
      if (untilUs > nowUs && byId.size < MOST_LENT) break
      byId.delete(oldId)
    }
    const tokens = bookings.reduce((sum, { cost }) => sum + cost, 0)
    if (tokens > 0) byId.set(id, { desk, policy, bookings, tokens, untilUs: nowUs + LONGEST_US })
  }

  /**
   * What was not spent is what was lent last. Each booking comes back as one that is cancelled: of a window only while that is the one of now, of a log
   * only while it is the newest.
   *
   * @param policy the one in force: what was lent under another does not come back.
   */
  giveBack(id: unknown, tokens: number, policy: Policy): void {
    const loan = this.byId.get(id as number)
    if (loan === undefined || loan.policy !== policy) return
    let left = Math.min(tokens, loan.tokens)
    loan.tokens -= left
    for (const booking of [...loan.bookings].reverse()) {
      if (left === 0) break
      const back = Math.min(left, booking.cost)
      loan.desk.giveBack(booking, back)
      left -= back
    }
  }
}
