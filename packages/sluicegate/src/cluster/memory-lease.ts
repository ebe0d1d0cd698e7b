import type { Limiter } from '../limiter.js'
import { allOf } from '../policy/all-of.js'
import { minuteWindow } from '../policy/calendar.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import type { Booking, BookingService } from '../waiting/reserving.js'

/** The most reservations for tokens that conform later: beyond that several tokens are reserved together and come due together. */
const MOST_LATER = 64

/** Tokens that may be spent from `beginUs` until `endUs`, both counted from now. */
export interface LeaseRun {
  readonly tokens: number
  readonly beginUs: number
  readonly endUs: number
}

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
 * The policy under which the primary keeps a leased one, so that a token spent at the end of its lease stays within the policy. The burst of a
 * rate excludes what flows back during a lease; a log counts each request for a lease longer; windows count when they lease.
 */
export function policyUnderLease(policy: Policy, leaseUs: number): Policy {
  const { algorithm, limit, windowMs, burst, policies, name } = policy
  if (policies !== undefined) {
    return allOf(
      policies.map((part) => policyUnderLease(part, leaseUs)),
      { name },
    )
  }
  if (algorithm === 'token-bucket' || algorithm === 'gcra') {
    return changedPolicy(policy, { burst: Math.floor(burst - (limit * leaseUs) / (windowMs * 1000)) })
  }
  return algorithm === 'sliding-log' ? changedPolicy(policy, { windowMs: windowMs + leaseUs / 1000 }) : policy
}

/** Reserves tokens for a worker: those that conform now, then those that will within the horizon, each for its time. */
export function leasedFrom(service: BookingService & Pick<Limiter, 'peek'>, policy: Policy, request: LeaseRequest): MemoryLease {
  const { key, want, least, nowUs } = request
  const before = service.peek(key, 1)
  const isBlocked = !before.allowed && before.remaining > 0
  const runs: LeaseRun[] = []
  const bookings: Booking[] = []
  let left = want
  let untilFreeUs = 0
  const booked = (tokens: number, mostUs: number): boolean => {
    const booking = service.book(key, tokens, mostUs / 1000)
    const { allowed, atUs, bookedUs } = booking
    untilFreeUs = allowed ? 0 : atUs - bookedUs
    if (!allowed) return false
    runs.push({ tokens, beginUs: atUs > bookedUs ? atUs - nowUs : 0, endUs: endUs(policy, atUs, request) - nowUs })
    bookings.push(booking)
    left -= tokens
    return true
  }
  if (before.allowed && before.remaining >= least) booked(Math.min(want, before.remaining), 0)
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

/** Whether tokens are granted before they conform. In a log a reservation ahead would close the time before it. */
export function isBookedAhead({ algorithm }: Policy): boolean {
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

function windowEndUs({ calendar, windowMs }: Policy, us: number): number {
  if (calendar !== undefined) return minuteWindow(calendar, us).endUs
  const windowUs = Math.round(windowMs * 1000)
  return (Math.floor(us / windowUs) + 1) * windowUs
}
