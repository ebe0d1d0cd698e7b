import { holdsPermits } from '../decision/permit.js'
import type { Reservation } from '../decision/reservation.js'
import { defaultClock } from '../default-clock.js'
import { PolicyError } from '../errors.js'
import { leaseUsOf } from '../lease/leasing.js'
import type { Key, Limiter } from '../limiter.js'
import { MemoryAllOfLimiter } from '../memory/memory-all-of.js'
import type { MemoryBooking } from '../memory/memory-bookings.js'
import type { MemoryLimiter } from '../memory/memory-limiter.js'
import { type PlanFor, planUnder, SAME_PLAN } from '../plan-options.js'
import { checkChange } from '../policy/checked-policy.js'
import { changedPolicy, type Policy, policiesOf } from '../policy/policy.js'
import { type Clock, tickerOf } from '../time/clock.js'
import type { Booking, BookingService, ReservationService } from '../waiting/reserving.js'
import type { BookedAhead } from './holdings.js'
import { horizonMsFor, keepRoomForLeases, policyUnderLease } from './memory-lease.js'
import { OwnedHolds } from './owned-holds.js'

/** Reservations of workers that are made anew when the numbers change, the latest: the others keep their times. */
const MOST_MOVED = 10_000

/** The limiter in this process's memory: the true state. */
export type OwnedLimiter = Limiter & BookingService & Pick<ReservationService, 'movedTo'>

/** What is needed of a limiter in memory whose state others share. */
export interface ServableLimiter
  extends Pick<Limiter, 'policy' | 'take' | 'peek' | 'reserve' | 'refund' | 'penalize' | 'block' | 'reset'>,
    Partial<Pick<Limiter, 'update'>> {}

/** Those to whom tokens are granted, with what their waits have booked for later times. */
type Sessions = Iterable<{ ahead(nowUs: number): readonly BookedAhead[] }>

/** A policy whose state this process owns, and leases to others. */
export class OwnedPolicy {
  policy: Policy
  readonly limiter: OwnedLimiter
  readonly nowUs: () => number
  /** What others hold. */
  readonly holds: OwnedHolds
  private readonly mostHorizonMs: number
  private readonly canPlan: boolean
  private readonly unplanned: ReadonlyMap<string, Policy> = new Map()
  /** The plans of the call under way, by level. Between calls a key stays where it is. */
  private said: ReadonlyMap<string, Policy> | undefined

  constructor(
    policy: Policy,
    {
      mostHorizonMs,
      clock = defaultClock(policy),
      limiter,
      isTimed = true,
      make,
    }: {
      /** How far ahead tokens are leased at most; 0 for not at all. */
      readonly mostHorizonMs: number
      readonly clock: Clock | undefined
      /** A limiter that is there already; its state is kept under the policy itself. */
      readonly limiter?: ServableLimiter | undefined
      /** Whether holds end by timers, too. */
      readonly isTimed?: boolean
      /** @param kept the policy under which the state is kept. */
      readonly make: (kept: Policy, clock: Clock, planFor: PlanFor) => Limiter
    },
  ) {
    this.policy = policy
    // What is leased of a log has to count for longer than its window, and what makes no reservations of its own grants nothing ahead.
    const canLease = limiter === undefined || (isBooking(limiter) && policiesOf(policy).every((each) => each.algorithm !== 'sliding-log'))
    this.mostHorizonMs = canLease ? mostHorizonMs : 0
    const ticker = tickerOf(clock)
    this.nowUs = () => ticker.read()
    // Without layers a limiter also makes its reservations.
    this.canPlan = limiter === undefined && policy.policies !== undefined
    const planFor: PlanFor = ({ name }) => (this.said === undefined ? SAME_PLAN : this.said.get(name))
    if (limiter === undefined) this.limiter = make(this.kept(policy), clock, planFor) as OwnedLimiter
    else this.limiter = isBooking(limiter) ? limiter : bookingOver(limiter, this.nowUs)
    this.holds = new OwnedHolds(this, isTimed ? clock : undefined)
    if (this.mostHorizonMs === 0) return
    for (const [i, part] of this.parts.entries()) {
      keepRoomForLeases(part, () => ({ policy: this.policy.policies?.[i] ?? this.policy, leaseUs: this.leaseUs }))
    }
  }

  /** 0 where nothing is leased. */
  get horizonMs(): number {
    return horizonMsFor(this.policy, this.mostHorizonMs)
  }

  get leaseUs(): number {
    return leaseUsOf(this.horizonMs)
  }

  get parts(): readonly OwnedLimiter[] {
    return limitersOf(this.limiter)
  }

  /** A call whose keys have these plans. @param plans a policy or null for each level; undefined: none. @throws {PolicyError} */
  under<Answer>(plans: unknown, call: () => Answer): Answer {
    if (!this.canPlan && plans === undefined) return call()
    this.said = this.checked(plans)
    try {
      return call()
    } finally {
      this.said = undefined
    }
  }

  /** Where a key of one of {@link parts} is. */
  placeOf<Part extends object>(part: Part, key: string): Part {
    return this.limiter instanceof MemoryAllOfLimiter
      ? (this.limiter.placeOf(part as unknown as MemoryLimiter, key) as unknown as Part)
      : part
  }

  /** Of a lease of one policy. Nothing of it comes back once its key has had another plan. */
  giveBackLease(at: number, booking: Booking, tokens: number): void {
    const part = this.parts[at] as OwnedLimiter & Partial<Pick<MemoryLimiter, 'placeOf'>>
    const place = part.placeOf?.(booking as MemoryBooking)
    if (place === undefined || place.booking === booking) part.giveBack(booking, tokens)
  }

  private checked(plans: unknown): ReadonlyMap<string, Policy> {
    const { policies = [] } = this.policy
    if (plans === undefined) return this.unplanned
    if (!this.canPlan || !Array.isArray(plans) || plans.length !== policies.length) {
      throw new PolicyError('OPTION_INVALID', 'plans', plans, 'are for a limiter of levels that is made here, a policy or null for each')
    }
    const planned = policies.flatMap((level, i) => (plans[i] === null ? [] : [[level.name, planUnder(level, plans[i])] as const]))
    for (const [level, plan] of planned) {
      if (holdsPermits(plan))
        throw new PolicyError('POLICY_INVALID', `policyFor.${level}`, plan, 'is of concurrency, which has no plans here')
    }
    return new Map(planned)
  }

  /** @throws {PolicyError} */
  update(policy: Policy, sessions: Sessions = []): void {
    const next = changedPolicy(policy, { name: this.policy.name })
    checkChange(this.policy, next)
    const kept = this.kept(next)
    // One that is served may have been updated by its owner.
    if (JSON.stringify(this.limiter.policy) !== JSON.stringify(kept)) {
      const bookAgain = this.lift(sessions)
      try {
        this.limiter.update(kept)
      } finally {
        bookAgain()
      }
    }
    this.policy = next
  }

  /**
   * Takes back what they have booked ahead, the latest first: after the change nothing of it would come back. The result books it anew, in
   * the order of before.
   */
  private lift(sessions: Sessions): () => void {
    const { limiter } = this
    const nowUs = this.nowUs()
    const latestFirst = [...sessions].flatMap((each) => each.ahead(nowUs)).sort((a, b) => b.order - a.order)
    const lifted: BookedAhead[] = []
    const bookAgain = (): void => bookAnew(limiter, lifted.reverse())
    try {
      for (const ahead of latestFirst.slice(0, MOST_MOVED)) if (limiter.unbook?.(ahead.booking)) lifted.push(ahead)
    } catch (error) {
      bookAgain()
      throw error
    }
    return bookAgain
  }

  private kept(policy: Policy): Policy {
    return policyUnderLease(policy, leaseUsOf(horizonMsFor(policy, this.mostHorizonMs)))
  }
}

/** In this order, each whatever becomes of those before it. @throws what the first that failed has thrown. */
function bookAnew(limiter: OwnedLimiter, lifted: readonly BookedAhead[]): void {
  let fault: { readonly error: unknown } | undefined
  for (const ahead of lifted) {
    const { booking } = ahead
    try {
      ahead.booking = limiter.book(booking.key, booking.cost, Number.POSITIVE_INFINITY)
    } catch (error) {
      // Nothing of it may come back.
      ahead.booking = { ...booking, allowed: false }
      fault ??= { error }
    }
  }
  if (fault !== undefined) throw fault.error
}

/** Of `allOf` the limiter of each policy. */
export function limitersOf(limiter: OwnedLimiter): readonly OwnedLimiter[] {
  return limiter instanceof MemoryAllOfLimiter ? limiter.parts : [limiter]
}

function isBooking(limiter: ServableLimiter): limiter is OwnedLimiter {
  return typeof (limiter as Partial<OwnedLimiter>).book === 'function'
}

/** A limiter that makes its reservations by its public verbs, as one with layers. */
function bookingOver(limiter: ServableLimiter, nowUs: () => number): OwnedLimiter {
  const made = new WeakMap<Booking, Reservation>()
  const book = (key: Key, cost: number, mostMs: number): Booking => {
    const reservation = limiter.reserve(key, cost, { maxWait: mostMs })
    const { allowed, waitMs, decision } = reservation
    const bookedUs = nowUs()
    const booking = { key, cost, allowed, bookedUs, atUs: bookedUs + waitMs * 1000, maybeSooner: true, decision }
    made.set(booking, reservation)
    return booking
  }
  const own: ServableLimiter & Pick<OwnedLimiter, 'update' | 'book' | 'redeem' | 'giveBack'> = {
    get policy() {
      return limiter.policy
    },
    take: (key, cost) => limiter.take(key, cost),
    peek: (key, cost) => limiter.peek(key, cost),
    reserve: (key, cost, options) => limiter.reserve(key, cost, options),
    refund: (key, tokens) => limiter.refund(key, tokens),
    penalize: (key, tokens) => limiter.penalize(key, tokens),
    block: (key, duration) => limiter.block(key, duration),
    reset: (key) => limiter.reset(key),
    update: (policy) => limiter.update?.(policy),
    book,
    redeem: ({ key }) => limiter.peek(key),
    giveBack: (booking, tokens) => made.get(booking)?.settle(booking.cost - tokens) ?? limiter.peek(booking.key),
  }
  return own as OwnedLimiter
}
