import type { Clock, Decision } from 'sluicegate'
import type { RateSpec } from './oracle/oracle.js'

/** What a booking asks back, and all that a rule may look at. Amounts and wear are in units, see `debt`. */
export interface Claim {
  /** Asked back, at most `cost`. */
  readonly back: number
  readonly cost: number
  /** The key's debt right after the booking, and now. */
  readonly booked: number
  readonly debt: number
  /** What of a debt time has worn off since it was booked, and since it might be spent: below 0 before. */
  readonly wornSinceBooked: number
  readonly wornSinceDue: number
  /** A debt up to here is no reason to wait. */
  readonly capacity: number
  /** The most that a booking after it may have left when it was given up: less than a token, and than flows back in a microsecond. */
  readonly rest: number
}

/** How many units come back. */
export type GiveBackRule = (claim: Claim) => number

/**
 * The rule of token bucket and GCRA.
 *
 * Before its time a booking comes back whole or not at all: whole when it is the latest that stands, because then the key is as if it had
 * never been, nor what came after it. From its time on, as much comes back as its own charge would still weigh had it been the only one, and nothing while others
 * wait for theirs.
 */
export function giveBackRule({ back, cost, booked, debt, wornSinceBooked, wornSinceDue, capacity, rest }: Claim): number {
  const after = debt - (booked - wornSinceBooked)
  if (booked > capacity && wornSinceDue < 0) return back === cost && after <= rest ? back + Math.max(0, after) : 0
  return debt > capacity ? 0 : Math.max(0, Math.min(back, cost - Math.max(0, wornSinceDue)))
}

/** Tokens of one key, charged. */
export interface BucketBooking {
  readonly key: string | readonly string[]
  readonly cost: number
  readonly allowed: boolean
  readonly bookedUs: number
  readonly atUs: number
  readonly maybeSooner: boolean
  readonly decision: Decision
}

/**
 * A token bucket for one key, in whole units of which `limit / gcd` come back each microsecond: the least that can be booked at. For tests of
 * what stands on a limiter.
 */
export class BookingBucket {
  blockedUntilUs = Number.NEGATIVE_INFINITY
  private readonly clock: Clock
  private readonly rule: GiveBackRule
  private readonly spec: RateSpec
  private readonly unitsPerUs: number
  private readonly unitsPerToken: number
  private readonly capacity: number
  private readonly booked = new WeakMap<BucketBooking, number>()
  /** The debt at `sinceUs`, wearing off from then on. */
  private owed = 0
  private sinceUs = 0

  constructor(spec: RateSpec, clock: Clock, rule: GiveBackRule = giveBackRule) {
    const { limit, windowMs, burst } = spec
    const windowUs = Math.round(windowMs * 1000)
    const shared = gcd(limit, windowUs)
    this.clock = clock
    this.rule = rule
    this.spec = spec
    this.unitsPerUs = limit / shared
    this.unitsPerToken = windowUs / shared
    this.capacity = burst * this.unitsPerToken
  }

  nowUs(): number {
    return Math.round(this.clock.nowMs() * 1000)
  }

  /** What is owed now, in units. */
  get debt(): number {
    return Math.max(0, this.owed - (this.nowUs() - this.sinceUs) * this.unitsPerUs)
  }

  take(cost: number): Decision {
    const decision = this.peek('k', cost)
    if (decision.allowed) this.charge(cost)
    return decision.allowed ? this.passed() : decision
  }

  peek(_key: unknown, cost: number): Decision {
    const waitUs = this.waitUs(cost)
    return this.decision(waitUs === 0, Math.ceil(waitUs / 1000))
  }

  book(key: BucketBooking['key'], cost: number, mostMs: number): BucketBooking {
    const bookedUs = this.nowUs()
    const waitUs = this.waitUs(cost)
    const isBlocked = this.blockedUntilUs > bookedUs
    const allowed = waitUs < Number.POSITIVE_INFINITY && waitUs <= mostMs * 1000 && !isBlocked
    // As of a take at that time: by then, a fraction of a microsecond after it would have passed, the key may owe nothing any more.
    if (allowed) this.owe(Math.max(this.debt, waitUs * this.unitsPerUs) + cost * this.unitsPerToken)
    const decision = allowed ? this.passed() : this.decision(false, Math.ceil(waitUs / 1000))
    const booking = { key, cost, allowed, bookedUs, atUs: bookedUs + waitUs, maybeSooner: false, decision }
    this.booked.set(booking, this.debt)
    return booking
  }

  redeem(_booking: BucketBooking): Decision {
    const { retryAfterMs } = this.peek('k', 1)
    return this.blockedUntilUs > this.nowUs() ? this.decision(false, retryAfterMs) : this.passed()
  }

  refuse(key: string, cost: number): Decision {
    return this.decision(false, Math.max(1, this.peek(key, cost).retryAfterMs))
  }

  giveBack(booking: BucketBooking, tokens: number): Decision {
    const { unitsPerUs, unitsPerToken, capacity, debt } = this
    const nowUs = this.nowUs()
    const claim: Claim = {
      back: tokens * unitsPerToken,
      cost: booking.cost * unitsPerToken,
      booked: this.booked.get(booking) ?? 0,
      debt,
      wornSinceBooked: (nowUs - booking.bookedUs) * unitsPerUs,
      wornSinceDue: (nowUs - booking.atUs) * unitsPerUs,
      capacity,
      rest: Math.min(unitsPerToken, unitsPerUs) - 1,
    }
    this.owe(Math.max(0, debt - this.rule(claim)))
    return this.peek('k', 1)
  }

  penalize(_key: unknown, tokens: number): Decision {
    this.charge(tokens)
    return this.peek('k', 1)
  }

  refund(tokens: number): void {
    this.owe(Math.max(0, this.debt - tokens * this.unitsPerToken))
  }

  private charge(tokens: number): void {
    this.owe(this.debt + tokens * this.unitsPerToken)
  }

  private owe(debt: number): void {
    this.owed = debt
    this.sinceUs = this.nowUs()
  }

  private waitUs(cost: number): number {
    if (cost > this.spec.burst) return Number.POSITIVE_INFINITY
    const waitUs = Math.max(0, Math.ceil((this.debt + cost * this.unitsPerToken - this.capacity) / this.unitsPerUs))
    return Math.max(waitUs, this.blockedUntilUs - this.nowUs())
  }

  private passed(): Decision {
    return this.decision(true, 0)
  }

  private decision(allowed: boolean, retryAfterMs: number): Decision {
    const remaining = Math.max(0, Math.floor((this.capacity - this.debt) / this.unitsPerToken))
    const resetAfterMs = Math.ceil(this.debt / this.unitsPerUs / 1000)
    return { allowed, limit: this.spec.limit, remaining, retryAfterMs, resetAfterMs, policy: 'bucket', source: 'memory' }
  }
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b)
}
