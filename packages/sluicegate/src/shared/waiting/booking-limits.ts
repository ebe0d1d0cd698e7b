import { nameOf } from '../../key.js'
import type { Key } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { BookingCooldown, BookingHorizon, isBookedAhead } from '../../waiting/bounded-bookings.js'

/** How far ahead a waiter may reserve: see {@link BookingHorizon} and {@link BookingCooldown}. Times are readings of this process's clock. */
export class BookingLimits {
  private readonly policyNow: () => Policy
  private readonly restraint = new BookingCooldown()
  private policy: Policy | undefined
  private known: BookingHorizon | undefined

  constructor(policyNow: () => Policy) {
    this.policyNow = policyNow
  }

  /** How many of its remaining milliseconds a waiter may reserve ahead. */
  mostMs(key: Key, leftMs: number, nowMs: number): number {
    const horizon = this.horizon()
    if (horizon === undefined) return leftMs
    const nowUs = nowMs * 1000
    return this.restraint.holds(nameOf(key), nowUs) ? 0 : Math.min(leftMs, horizon.aheadUs(nowUs) / 1000)
  }

  /** Milliseconds until a waiter that was denied until `atMs` asks again. */
  askAgainMs(key: Key, atMs: number, nowMs: number): number {
    const horizon = this.horizon()
    const leftMs = Math.max(0, atMs - nowMs)
    if (horizon === undefined || this.restraint.holds(nameOf(key), nowMs * 1000)) return leftMs
    const bookableMs = horizon.bookableUs(atMs * 1000) / 1000 - nowMs
    // Denied although it was near enough: the key is banned.
    return bookableMs > 0 ? bookableMs : leftMs
  }

  /** The earliest reading at which `tokens` can all have passed if the first passes at `atMs`: after a ban, a whole burst at once. */
  allPassedMs(atMs: number, tokens: number): number {
    const horizon = this.horizon()
    const atOnce = Math.min(tokens, this.policyNow().burst)
    return (horizon?.allPassedUs(atMs * 1000, atOnce, tokens) ?? Number.NEGATIVE_INFINITY) / 1000
  }

  /** A reservation for `atMs` was given up. */
  gaveUp(key: Key, nowMs: number, atMs: number): void {
    if (atMs > nowMs && this.horizon() !== undefined) this.restraint.add(nameOf(key), nowMs * 1000, atMs * 1000)
  }

  private horizon(): BookingHorizon | undefined {
    const policy = this.policyNow()
    if (!isBookedAhead(policy)) return undefined
    if (policy !== this.policy) {
      this.policy = policy
      this.known = new BookingHorizon(policy)
    }
    return this.known
  }
}
