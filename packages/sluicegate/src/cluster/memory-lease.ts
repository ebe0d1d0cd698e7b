import { checkedTokens } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { Key, Limiter } from '../limiter.js'
import { allOf } from '../policy/all-of.js'
import { minuteWindow } from '../policy/calendar.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import { scaledUp } from '../policy/policy-numbers.js'
import { MAX_WINDOW_MS } from '../policy/policy-options.js'
import type { Booking, BookingService } from '../waiting/reserving.js'

/** The most reservations for tokens that conform later: beyond that several tokens are reserved together and come due together. */
const MOST_LATER = 64

/** Tokens that may be spent from `beginUs` until `endUs`, both counted from now. */
export interface LeaseRun {
  readonly tokens: number
  readonly beginUs: number
  readonly endUs: number
}

/** What keeps room for leases in a limiter. */
type PrimaryRate = Pick<Limiter, 'peek' | 'refund' | 'penalize'> & Pick<BookingService, 'giveBack'>

/** What a lease granted, and the state of the key after it. */
export interface MemoryLease {
  /** By their beginning. */
  readonly runs: readonly LeaseRun[]
  /** The reservations behind the runs, in the same order. */
  readonly bookings: readonly Booking[]
  /** Until the smallest useful number of tokens would pass; 0 when all that was wanted was granted. */
  readonly untilFreeUs: number
  readonly blockedUs: number
  readonly remaining: number
  readonly untilNewUs: number
}

/** A lease request in the primary. */
export interface LeaseRequest {
  readonly key: string
  readonly want: number
  /** When there are fewer, none is granted. */
  readonly least: number
  readonly horizonUs: number
  /** How long a token may be spent. */
  readonly leaseUs: number
  readonly nowUs: number
}

/**
 * The policy under which the primary keeps a leased one, so that a token spent at the end of its lease stays within the policy. A log counts
 * each request for a lease longer; a rate leaves room for it with each lease; windows count when they lease.
 */
export function policyUnderLease(policy: Policy, leaseUs: number): Policy {
  const { algorithm, windowMs, policies, name } = policy
  if (policies !== undefined) {
    return allOf(
      policies.map((part) => policyUnderLease(part, leaseUs)),
      { name },
    )
  }
  return algorithm === 'sliding-log' ? changedPolicy(policy, { windowMs: windowMs + leaseUs / 1000 }) : policy
}

/** How far ahead a policy is leased, at most `longestMs`; 0 where it is not. Of several policies all are leased, or none. */
export function horizonMsFor(policy: Policy, longestMs: number): number {
  const canLease = (part: Policy): boolean =>
    whyNotLeased(part, longestMs) === undefined && policyUnderLease(part, leaseUsOf(longestMs)).windowMs <= MAX_WINDOW_MS
  return longestMs > 0 && (policy.policies ?? [policy]).every(canLease) ? longestMs : 0
}

/**
 * Tokens of a rate that leave a key no less debt than flows back during a lease, together with what it owes: leased tokens arrive when the lease
 * ends. What it owes is known to the token, and counts as one less.
 */
export function tokensForLease(policy: Policy, leaseUs: number, { remaining }: Pick<Decision, 'remaining'>): number {
  const { limit, windowMs, burst } = policy
  if (!flowsBack(policy)) return 0
  return Math.max(0, scaledUp(limit, leaseUs, Math.round(windowMs * 1000)) - Math.max(0, burst - remaining - 1))
}

/** Reserves tokens for a worker: those that conform now, then those that will within the horizon, each for its time. */
export function leasedFrom(service: BookingService & Pick<Limiter, 'peek'>, policy: Policy, request: LeaseRequest): MemoryLease {
  const { key, want, least, nowUs, leaseUs } = request
  const before = service.peek(key, 1)
  const isBlocked = !before.allowed && before.remaining > 0
  const runs: LeaseRun[] = []
  const bookings: Booking[] = []
  let left = want
  let room = tokensForLease(policy, leaseUs, before)
  let untilFreeUs = 0
  const booked = (tokens: number, mostUs: number): boolean => {
    const booking = service.book(key, tokens + room, mostUs / 1000)
    const { allowed, atUs, bookedUs } = booking
    untilFreeUs = allowed ? 0 : atUs - bookedUs
    if (!allowed) return false
    runs.push({ tokens, beginUs: atUs > bookedUs ? atUs - nowUs : 0, endUs: endUs(policy, atUs, request) - nowUs })
    bookings.push(booking)
    left -= tokens
    room = 0
    return true
  }
  const free = before.remaining - room
  if (before.allowed && free >= least) booked(Math.min(want, free), 0)
  const mostUs = isBlocked ? 0 : aheadUs(policy, request)
  // No more flows back meanwhile. The smallest requested cost is reserved at once.
  const inTime = (policy.limit * mostUs) / (policy.windowMs * 1000)
  let together = Math.max(least, Math.ceil(Math.min(left, inTime) / MOST_LATER))
  while (left >= least && runs.length <= MOST_LATER) {
    if (booked(Math.min(left, together), mostUs)) continue
    if (together === least) break
    together = Math.max(least, Math.floor(together / 2))
  }
  const { remaining, resetAfterMs } = service.peek(key, 1)
  return { runs, bookings, untilFreeUs, blockedUs: isBlocked ? untilFreeUs : 0, remaining, untilNewUs: resetAfterMs * 1000 }
}

/**
 * From now on, tokens that come back to a key of a rate leave it the debt that keeps room for leased tokens.
 *
 * @param termsOf the policy in force, and the length of a lease; 0 where nothing is leased.
 */
export function keepRoomForLeases(limiter: PrimaryRate, termsOf: () => { readonly policy: Policy; readonly leaseUs: number }): void {
  const keeping = <Args extends readonly [unknown, number]>(keyOf: (args: Args) => Key, back: (...args: Args) => Decision) => {
    return (...args: Args): Decision => {
      const { policy, leaseUs } = termsOf()
      if (leaseUs === 0 || !flowsBack(policy)) return back(...args)
      const key = keyOf(args)
      checkedTokens(args[1])
      const before = limiter.peek(key)
      if (tokensForLease(policy, leaseUs, before) > 0) return before
      const after = back(...args)
      const lacking = tokensForLease(policy, leaseUs, after)
      return lacking > 0 ? limiter.penalize(key, lacking) : after
    }
  }
  limiter.refund = keeping(([key]) => key as Key, limiter.refund.bind(limiter))
  limiter.giveBack = keeping(([{ key }]) => key, limiter.giveBack.bind(limiter))
}

/** Whether tokens are granted before they conform. In a log a reservation ahead would close the time before it. */
function isBookedAhead({ algorithm }: Policy): boolean {
  return algorithm !== 'fixed-window' && algorithm !== 'sliding-log'
}

/** Whether unspent tokens flow back by themselves, as with a rate; else a worker may return them. */
export function flowsBack({ algorithm }: Policy): boolean {
  return algorithm === 'token-bucket' || algorithm === 'gcra'
}

/** How far ahead tokens are reserved: with windows not into the next one. */
function aheadUs(policy: Policy, { nowUs, horizonUs }: LeaseRequest): number {
  if (!isBookedAhead(policy)) return 0
  return policy.algorithm === 'sliding-window' ? Math.min(horizonUs, windowEndUs(policy, nowUs) - nowUs - 1) : horizonUs
}

/** When tokens that conform at `atUs` expire. */
function endUs(policy: Policy, atUs: number, { leaseUs }: LeaseRequest): number {
  const isWindow = policy.algorithm === 'fixed-window' || policy.algorithm === 'sliding-window'
  return isWindow ? Math.min(windowEndUs(policy, atUs), atUs + leaseUs) : atUs + leaseUs
}

/** When the window of a time ends, microseconds since the Unix epoch. */
export function windowEndUs({ calendar, windowMs }: Policy, us: number): number {
  if (calendar !== undefined) return minuteWindow(calendar, us).endUs
  const windowUs = Math.round(windowMs * 1000)
  return (Math.floor(us / windowUs) + 1) * windowUs
}
