import { BoundedMap } from '../bounded-map.js'
import type { Decision } from '../decision/decision.js'
import { nameOf } from '../key.js'
import type { Key } from '../limiter.js'
import { isRate, type Policy } from '../policy/policy.js'
import type { Alarm } from './alarm.js'
import type { Booking, BookingService } from './reserving.js'

/** How far ahead the waiters of a limiter may book: {@link BookingHorizon} and {@link BookingCooldown}. Times are readings of its clock. */
export class BookingLimits {
  private readonly policyNow: () => Policy | undefined
  private readonly cooldown = new BookingCooldown()
  private policy: Policy | undefined
  private known: BookingHorizon | undefined

  /** @param policyNow the policy in force; undefined where nothing is booked ahead. */
  constructor(policyNow: () => Policy | undefined) {
    this.policyNow = policyNow
  }

  /** Whether waiters book ahead, and have limits. */
  get areSet(): boolean {
    return this.horizon() !== undefined
  }

  /** How many of its remaining milliseconds a waiter may book ahead. */
  mostMs(key: Key, leftMs: number, nowUs: number): number {
    return this.areSet && this.cooldown.holds(nameOf(key), nowUs) ? 0 : Math.min(leftMs, this.aheadMs(nowUs))
  }

  /** How far ahead waiters book, in milliseconds. */
  aheadMs(nowUs: number): number {
    const aheadUs = this.horizon()?.aheadUs(nowUs)
    return aheadUs === undefined ? Number.POSITIVE_INFINITY : aheadUs / 1000
  }

  /**
   * When the tokens of a waiter that was denied until `atUs` can be booked. Undefined if they cannot be before they can be spent; or if they
   * could be now, and were denied for another reason, such as a ban.
   */
  bookableUs(key: Key, atUs: number, nowUs: number): number | undefined {
    const horizon = this.horizon()
    if (horizon === undefined || atUs === Number.POSITIVE_INFINITY || this.cooldown.holds(nameOf(key), nowUs)) return undefined
    const bookableUs = horizon.bookableUs(atUs)
    return bookableUs > nowUs ? bookableUs : undefined
  }

  /** The earliest reading at which `tokens` can all have passed, when the first of them can at `firstUs`; undefined where it is unknown. */
  allPassedUs(firstUs: number, first: number, tokens: number): number | undefined {
    return this.horizon()?.allPassedUs(firstUs, first, tokens)
  }

  /** A booking for `atUs` was given up, and the key would not pass now. */
  gaveUp(key: Key, nowUs: number, atUs: number): void {
    if (atUs > nowUs && this.areSet) this.cooldown.add(nameOf(key), nowUs, atUs)
  }

  private horizon(): BookingHorizon | undefined {
    const policy = this.policyNow()
    if (policy === undefined) return undefined
    if (policy !== this.policy) {
      this.policy = policy
      this.known = new BookingHorizon(policy)
    }
    return this.known
  }
}

/** Bookings of waiters at a limiter in memory, within {@link BookingLimits}. */
export class BoundedBookings<Answer extends Decision> {
  readonly service: BookingService<Answer>
  readonly alarm: Alarm
  private readonly limits: BookingLimits

  constructor(service: BookingService<Answer>, alarm: Alarm) {
    this.service = service
    this.alarm = alarm
    this.limits = new BookingLimits(() => service.bookedPolicy?.())
  }

  /** {@link BookingService.book}, no further ahead than waiters may. */
  book(key: Key, cost: number, mostMs: number): Booking<Answer> {
    const isBounded = mostMs > 0 && this.limits.areSet
    return this.service.book(key, cost, isBounded ? this.limits.mostMs(key, mostMs, this.alarm.nowUs()) : mostMs)
  }

  /** The same for a waiter that had a booking: what others have given up does not count against it. */
  bookAgain(key: Key, cost: number, mostMs: number): Booking<Answer> {
    return this.service.book(key, cost, Math.min(mostMs, this.limits.aheadMs(this.alarm.nowUs())))
  }

  /** When a denied waiter asks again: when its tokens can be booked, otherwise when they can be spent. */
  askAgainUs({ key, atUs, bookedUs }: Booking<Answer>): number {
    return this.limits.bookableUs(key, atUs, bookedUs) ?? Math.max(atUs, bookedUs + 1)
  }

  /** The earliest reading at which `tokens` can all have passed; `first` is the denial of the first of them. */
  allPassedUs(first: Booking<Answer>, tokens: number): number {
    if (first.isBlocked) return first.bookedUs
    return this.limits.allPassedUs(first.atUs, first.cost, tokens) ?? first.bookedUs
  }

  /** Gives back the booking of a waiter that gave up. */
  giveUp(booking: Booking<Answer>, cost: number): void {
    const { allowed } = this.service.giveBack(booking, cost)
    if (!allowed && this.limits.areSet) this.limits.gaveUp(booking.key, this.alarm.nowUs(), booking.atUs)
  }
}

/** Days, months and years of a calendar are never shorter than this share of the longest. */
const SHORTEST_CALENDAR = 0.9

/** Whether waiters book ahead under a policy: permits are released any time, and takes under several policies are made together. */
export function isBookedAhead({ algorithm, calendar }: Policy): boolean {
  return algorithm !== 'concurrency' && algorithm !== 'all-of' && calendar?.unit !== 'ever'
}

/** Whether a key whose tokens are booked ahead is closed until then: what comes back of this moment is for those who wait. */
export function isClosedAhead({ algorithm }: Policy): boolean {
  return algorithm === 'fixed-window' || algorithm === 'sliding-window' || algorithm === 'sliding-log'
}

/**
 * How far ahead waiters book: as far as a single request may have to wait, and no further. Other waiters queue without a booking. So a key is
 * open again after this time at the latest, whatever is booked and given up.
 *
 * | policy | furthest |
 * | --- | --- |
 * | token bucket, GCRA | the time in which a whole burst flows back, at least a window |
 * | fixed window, sliding log | a window |
 * | sliding window | the end of the next window |
 */
class BookingHorizon {
  private readonly policy: Policy
  private readonly windowUs: number
  private readonly limit: number

  constructor(policy: Policy) {
    this.policy = policy
    this.windowUs = policy.windowMs * 1000
    this.limit = policy.limit
  }

  /** Microseconds from `nowUs` on within which a waiter books. */
  aheadUs(nowUs: number): number {
    const { algorithm, burst } = this.policy
    const { windowUs, limit } = this
    if (algorithm === 'sliding-window') return Math.ceil(2 * windowUs - (nowUs % windowUs))
    // A log counts in ticks, a rate in units: both round up.
    const slackUs = algorithm === 'fixed-window' ? 0 : windowUs / 64
    const bursts = isRate(this.policy) ? Math.max(1, burst / limit) : 1
    return Math.ceil(windowUs * bursts + slackUs)
  }

  /** The first reading at which `atUs` is no further ahead than that. */
  bookableUs(atUs: number): number {
    const { windowUs } = this
    if (this.policy.algorithm === 'sliding-window') return (Math.ceil(atUs / windowUs) - 2) * windowUs
    return atUs - this.aheadUs(atUs)
  }

  /** The earliest reading at which `tokens` can all have passed, when the first of them can at `firstUs`. */
  allPassedUs(firstUs: number, first: number, tokens: number): number {
    const { algorithm, calendar } = this.policy
    const { windowUs, limit } = this
    if (isRate(this.policy)) return firstUs + Math.floor(((tokens - first) * windowUs) / limit)
    const windows = Math.ceil(tokens / limit) - 1
    if (windows <= 0) return firstUs
    if (calendar !== undefined) return firstUs + Math.floor((windows - 1) * windowUs * SHORTEST_CALENDAR)
    const fromUs = algorithm === 'sliding-log' ? firstUs : firstUs - (firstUs % windowUs)
    return Math.max(firstUs, fromUs + windows * windowUs)
  }
}

/** The cooldown lasts this many times as long as the abandoned booking closed its key. */
const TIMES_AS_LONG = 8
/** Keys remembered; the oldest is evicted first. */
const MOST_KEYS = 10_000

/**
 * Keys whose waiter gave up a booking ahead. The tokens may not come back: a window or log stays closed until the booked time. During the
 * cooldown, waiters of such a key queue without a booking, so that a client cannot keep a key closed by waits that it repeatedly gives
 * up.
 */
class BookingCooldown {
  private readonly untilUs = new BoundedMap<string, number>(MOST_KEYS)

  /** A booking for `atUs` was given up, and the key would not pass now. */
  add(name: string, nowUs: number, atUs: number): void {
    this.untilUs.set(name, Math.max(nowUs + TIMES_AS_LONG * (atUs - nowUs), this.untilUs.get(name) ?? 0))
  }

  holds(name: string, nowUs: number): boolean {
    const untilUs = this.untilUs.get(name)
    if (untilUs === undefined) return false
    if (untilUs > nowUs) return true
    this.untilUs.delete(name)
    return false
  }
}
