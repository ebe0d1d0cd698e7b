import { checkedTokens } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { Key, Limiter } from '../limiter.js'
import { allOf } from '../policy/all-of.js'
import { minuteWindow } from '../policy/calendar.js'
import { changedPolicy, isRate, type Policy, policiesOf } from '../policy/policy.js'
import { scaledUp } from '../policy/policy-numbers.js'
import { MAX_WINDOW_MS } from '../policy/policy-options.js'
import type { LeaseRequest } from '../shared/backend.js'
import type { Booking, BookingService } from '../waiting/reserving.js'

/** What a lease granted, and the state of the key after it. */
export interface MemoryLease {
  readonly tokens: number
  /** Until when they may be spent, counted from now. */
  readonly endUs: number
  /** What charged them; absent where none are granted. */
  readonly booking?: Booking
  /** Until the smallest useful number of tokens would pass; 0 when all that was wanted was granted. */
  readonly untilFreeUs: number
  readonly blockedUs: number
  readonly remaining: number
  readonly untilNewUs: number
}

/**
 * The policy under which an owner keeps a leased one, so that a token spent at the end of its lease stays within the policy. A log counts
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

/** How far ahead a policy is leased, at most `mostHorizonMs`; 0 where it is not. Of several policies all are leased, or none. */
export function horizonMsFor(policy: Policy, mostHorizonMs: number): number {
  const canLease = (part: Policy): boolean =>
    whyNotLeased(part, mostHorizonMs) === undefined && policyUnderLease(part, leaseUsOf(mostHorizonMs)).windowMs <= MAX_WINDOW_MS
  return mostHorizonMs > 0 && policiesOf(policy).every(canLease) ? mostHorizonMs : 0
}

/**
 * Tokens of a rate that leave a key no less debt than flows back during a lease, together with what it owes: leased tokens arrive when the lease
 * ends. What it owes is known to the token, and counts as one less.
 */
export function tokensForLease(policy: Policy, leaseUs: number, { remaining }: Pick<Decision, 'remaining'>): number {
  const { limit, windowMs, burst } = policy
  if (!isRate(policy)) return 0
  return Math.max(0, scaledUp(limit, leaseUs, Math.round(windowMs * 1000)) - Math.max(0, burst - remaining - 1))
}

/**
 * Charges tokens for a worker: those that conform now.
 *
 * @param least when there are fewer, none are charged.
 * @param leaseUs how long a token may be spent.
 */
export function leasedFrom(
  service: BookingService & Pick<Limiter, 'peek'>,
  policy: Policy,
  { key, want, least }: Pick<LeaseRequest, 'key' | 'want' | 'least'>,
  leaseUs: number,
  nowUs: number,
): MemoryLease {
  const before = service.peek(key, 1)
  const room = tokensForLease(policy, leaseUs, before)
  const free = before.remaining - room
  const charge = (tokens: number): Booking => service.book(key, tokens, 0)
  const booking = before.allowed && free >= least ? charge(Math.min(want, free) + room) : undefined
  const isGranted = booking?.allowed === true
  const tokens = isGranted ? booking.cost - room : 0
  const untilFreeUs = tokens < want ? untilFreeFor(service, charge(isGranted ? least : least + room)) : 0
  const { remaining, resetAfterMs } = service.peek(key, 1)
  const isBlocked = !before.allowed && before.remaining > 0
  return {
    tokens,
    endUs: isGranted ? endUs(policy, booking.atUs, leaseUs) - nowUs : 0,
    ...(isGranted && { booking }),
    untilFreeUs,
    blockedUs: isBlocked ? untilFreeUs : 0,
    remaining,
    untilNewUs: resetAfterMs * 1000,
  }
}

/** How long more tokens are denied, to the microsecond; 0 where they have become free meanwhile, and nothing of the look stays charged. */
function untilFreeFor(service: BookingService, more: Booking): number {
  if (!more.allowed) return more.atUs - more.bookedUs
  service.giveBack(more, more.cost)
  return 0
}

/**
 * From now on, tokens that come back to a key of a rate leave it the debt that keeps room for leased tokens.
 *
 * @param termsOf the policy in force, and the length of a lease; 0 where nothing is leased.
 */
export function keepRoomForLeases(
  limiter: Pick<Limiter, 'peek' | 'refund' | 'penalize'> & Pick<BookingService, 'giveBack'>,
  termsOf: () => { readonly policy: Policy; readonly leaseUs: number },
): void {
  const keeping = <Args extends readonly [unknown, number]>(keyOf: (args: Args) => Key, back: (...args: Args) => Decision) => {
    return (...args: Args): Decision => {
      const { policy, leaseUs } = termsOf()
      if (leaseUs === 0 || !isRate(policy)) return back(...args)
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

/** When tokens that conform at `atUs` expire. */
function endUs(policy: Policy, atUs: number, leaseUs: number): number {
  const isWindow = policy.algorithm === 'fixed-window' || policy.algorithm === 'sliding-window'
  return isWindow ? Math.min(windowEndUs(policy, atUs), atUs + leaseUs) : atUs + leaseUs
}

/** When the window of a time ends, microseconds since the Unix epoch. */
export function windowEndUs({ calendar, windowMs }: Policy, us: number): number {
  if (calendar !== undefined) return minuteWindow(calendar, us).endUs
  const windowUs = Math.round(windowMs * 1000)
  return (Math.floor(us / windowUs) + 1) * windowUs
}
