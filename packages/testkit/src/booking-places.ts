import type { Decision, Key, ManualClock } from 'sluicegate'
import type { BucketBooking } from './booking-bucket.js'

interface Held {
  readonly key: Key
  readonly cost: number
  readonly untilUs: number
}

/**
 * Three places for each single key, each for 100 ms at most; a key of several takes places in all of them. Nothing can be booked
 * ahead. For tests of what stands on a limiter.
 */
export class BookingPlaces {
  readonly ttlMs = 100
  limit = 3
  /** How often it was asked for places. */
  asked = 0
  private readonly clock: ManualClock
  private held: Held[] = []

  constructor(clock: ManualClock) {
    this.clock = clock
  }

  book(key: Key, cost: number, _mostMs = 0): BucketBooking {
    this.asked++
    const bookedUs = this.nowUs()
    const allowed = this.used(key) + cost <= this.limit
    if (allowed) this.held.push({ key, cost, untilUs: bookedUs + this.ttlMs * 1000 })
    const decision = this.decision(allowed, key, cost)
    return { key, cost, allowed, bookedUs, atUs: bookedUs + decision.retryAfterMs * 1000, maybeSooner: true, decision }
  }

  answer({ decision }: BucketBooking): Decision {
    return decision
  }

  giveBack({ key, cost }: BucketBooking, _tokens: number): Decision {
    this.release(key)
    return this.decision(true, key, cost)
  }

  refuse(key: Key, cost: number): Decision {
    const decision = this.decision(false, key, cost)
    return { ...decision, retryAfterMs: this.used(key) > 0 || cost > this.limit ? decision.retryAfterMs : 1 }
  }

  /** What was taken first for exactly this key comes back. */
  release(key: Key): void {
    const first = this.held.find((held) => String(held.key) === String(key))
    this.held = this.held.filter((held) => held !== first)
  }

  private decision(allowed: boolean, key: Key, cost: number): Decision {
    const leftUs = this.sharing(key).map(({ untilUs }) => untilUs - this.nowUs())
    const retryAfterMs = allowed ? 0 : cost > this.limit ? Number.POSITIVE_INFINITY : Math.ceil(Math.min(...leftUs) / 1000)
    const remaining = Math.max(0, this.limit - this.used(key))
    return { allowed, limit: this.limit, remaining, retryAfterMs, resetAfterMs: 0, policy: 'places', source: 'memory' }
  }

  private used(key: Key): number {
    return this.sharing(key).reduce((sum, { cost }) => sum + cost, 0)
  }

  private sharing(key: Key): Held[] {
    const own = [key].flat()
    return this.held.filter((held) => held.untilUs > this.nowUs() && [held.key].flat().some((one) => own.includes(one)))
  }

  private nowUs(): number {
    return Math.round(this.clock.nowMs() * 1000)
  }
}
