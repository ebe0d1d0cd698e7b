import { allOf } from './all-of.js'
import { keysFor } from './all-of-keys.js'
import { checkedCost } from './arguments.js'
import type { Booking, BookingDesk } from './booking.js'
import { checkedPolicy } from './checked-policy.js'
import { type Clock, clockHandle, tickerOf } from './clock.js'
import { combined } from './combined-decision.js'
import type { Decision } from './decision.js'
import { denials } from './diagnostics.js'
import type { Duration } from './duration.js'
import { holdsPermits, isPermit } from './empty-permit.js'
import { PolicyError } from './errors.js'
import type { BoundKey, Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from './limiter.js'
import type { MemoryBooking } from './memory-decisions.js'
import type { MemoryHandle, MemoryLimiter } from './memory-limiter.js'
import { holdOf, MemoryPermit } from './memory-permit.js'
import { snapshotOf } from './memory-snapshot.js'
import type { Policy } from './policy.js'
import { checkChange } from './policy-change.js'
import type { Reservation } from './reservation.js'
import { reserve } from './reserving.js'
import { sumOfStats } from './sum-of-stats.js'
import { TakesTogether } from './takes-together.js'
import { TopLists } from './top-lists.js'
import { Waiting } from './waiting.js'

/** What a handle carries: one of each part, which share a memory. */
export interface AllOfHandle extends LimiterHandle {
  readonly parts: readonly MemoryHandle[]
  readonly name: string
  readonly clock: ReturnType<typeof clockHandle>
}

/** What the parts have in common. */
export interface AllOfParts {
  readonly parts: readonly MemoryLimiter[]
  readonly name: string
  readonly clock: Clock
  readonly hotKeys: number
  readonly maxWaiters: number
}

/** A booking of every part. */
interface AllOfBooking extends Booking {
  readonly parts: readonly MemoryBooking[]
}

/** Several policies as one, in sections of one shared memory: charged together by one swap over several words, or not at all. */
export class MemoryAllOfLimiter implements Limiter, BookingDesk {
  private readonly parts: readonly MemoryLimiter[]
  private readonly clock: Clock
  private readonly together: TakesTogether
  private readonly lists: TopLists
  private readonly waiting: Waiting<Decision>
  /** Whether a part of it is a concurrency limit. */
  private readonly holdsPermits: boolean
  private name: string

  constructor({ parts, name, clock, hotKeys, maxWaiters }: AllOfParts) {
    this.parts = parts
    this.name = name
    this.clock = clock
    this.together = new TakesTogether(parts, tickerOf(clock))
    this.lists = new TopLists(hotKeys)
    const releases = parts.find((part) => holdsPermits(part.policy))?.releases()
    this.holdsPermits = releases !== undefined
    this.waiting = new Waiting({ desk: this, clock, maxWaiters, releases })
    for (const part of parts) part.onRelease = (key) => this.waiting.released(key)
  }

  get policy(): Policy {
    return allOf(
      this.parts.map((part) => part.policy),
      { name: this.name },
    )
  }

  take(key: Key, cost = 1): Decision {
    if (this.waiting.queued > 0 && this.waiting.isQueued(key)) return this.refuse(key, cost)
    return this.taken(key, cost).decision
  }

  peek(key: Key, cost = 1): Decision {
    return combined(this.eachKey(key, (part, own) => part.peek(own, cost)))
  }

  wait(key: Key, options?: WaitOptions): Promise<Decision> {
    return this.waiting.wait(key, options)
  }

  reserve(key: Key, cost: number): Reservation {
    return reserve(this, key, cost)
  }

  key(key: Key): BoundKey {
    keysFor(this.parts.length, key)
    this.first.core.look()
    return { key, take: (cost) => this.take(key, cost), peek: (cost) => this.peek(key, cost) }
  }

  refund(key: Key, tokens: number): Decision {
    return this.released(key, (part, own) => part.refund(own, tokens))
  }

  penalize(key: Key, tokens: number): Decision {
    return combined(this.eachKey(key, (part, own) => part.penalize(own, tokens)))
  }

  block(key: Key, duration: Duration): Decision {
    return this.released(key, (part, own) => part.block(own, duration))
  }

  reset(key: Key): Decision {
    return this.released(key, (part, own) => part.reset(own))
  }

  update(policy: Policy): void {
    const { algorithm, policies = [], name } = checkedPolicy(policy)
    if (algorithm !== 'all-of' || policies.length !== this.parts.length) {
      const mend = `must stay allOf of ${this.parts.length} policies: make a new limiter to change that`
      throw new PolicyError('ALGORITHM_CHANGE', 'policy', algorithm, mend)
    }
    // All are looked at before the first is changed.
    for (const [i, part] of this.parts.entries()) checkChange(part.policy, policies[i] as Policy)
    for (const [i, part] of this.parts.entries()) part.update(policies[i] as Policy)
    this.name = name
    this.waiting.released()
  }

  handle(): LimiterHandle {
    const parts = this.parts.map((part) => part.handle() as MemoryHandle)
    const handle: AllOfHandle = { sluicegate: 1, parts, name: this.name, clock: clockHandle(this.clock) }
    return handle
  }

  stats(): LimiterStats {
    // One memory holds them all.
    return { ...sumOfStats(this.parts), memoryBytes: this.first.stats().memoryBytes }
  }

  hotKeys(n?: number): ReturnType<TopLists['top']> {
    this.first.core.look()
    return this.lists.top(n)
  }

  snapshot(): Uint8Array {
    const { secret } = this.first
    return snapshotOf({ allOf: this.name, secret, sections: this.parts.map((part) => part.section) })
  }

  close(): void {
    this.waiting.close()
    for (const part of this.parts) part.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  // What waiting and reserving ask for. Nothing is booked ahead: the parts would come due at different times.

  book(key: Key, cost: number): AllOfBooking {
    return this.taken(key, cost)
  }

  answer({ decision }: Booking): Decision {
    return decision
  }

  giveBack(booking: AllOfBooking, tokens: number): Decision {
    return combined(booking.parts.map((part, i) => (this.parts[i] as MemoryLimiter).giveBack(part, tokens)))
  }

  refuse(key: Key, cost: number): Decision {
    const decision = this.peek(key, cost)
    return { ...decision, allowed: false, retryAfterMs: Math.max(1, decision.retryAfterMs) }
  }

  private taken(key: Key, cost: number): AllOfBooking {
    const tokens = checkedCost(cost)
    if (typeof key !== 'string') keysFor(this.parts.length, key)
    const { isCharged, nowUs, bookings } = this.together.take(key, tokens)
    return isCharged ? this.charged(key, tokens, nowUs, bookings) : this.denied(key, tokens, nowUs, bookings)
  }

  private charged(key: Key, cost: number, nowUs: number, parts: readonly MemoryBooking[]): AllOfBooking {
    const whole = combined(parts.map(({ decision }) => decision))
    const decision = this.holdsPermits ? new MemoryPermit(whole, holdOf((whole.parts ?? []).filter(isPermit))) : whole
    this.lists.count(key, true)
    return { key, cost, allowed: true, bookedUs: nowUs, atUs: nowUs, maybeSooner: false, decision, parts }
  }

  private denied(key: Key, cost: number, nowUs: number, parts: readonly MemoryBooking[]): AllOfBooking {
    // What another part had let pass is shown as it is: nothing was charged.
    const decisions = parts.map((part, i) => (part.allowed ? (this.parts[i] as MemoryLimiter).peek(part.key, cost) : part.decision))
    const whole = combined(decisions)
    const decision = this.holdsPermits ? new MemoryPermit(whole) : whole
    this.lists.count(key, false)
    if (denials.hasSubscribers) denials.publish({ policy: decision.policy, key, cost, decision })
    const atUs = nowUs + decision.retryAfterMs * 1000
    return { key, cost, allowed: false, bookedUs: nowUs, atUs, maybeSooner: this.holdsPermits, decision, parts }
  }

  /** Of each part; then those who stand in line ask again. */
  private released(key: Key, verb: (part: MemoryLimiter, own: string) => Decision): Decision {
    const decision = combined(this.eachKey(key, verb))
    if (this.waiting.queued > 0) this.waiting.released(key)
    return decision
  }

  private get first(): MemoryLimiter {
    return this.parts[0] as MemoryLimiter
  }

  private eachKey(key: Key, verb: (part: MemoryLimiter, own: string) => Decision): Decision[] {
    const keys = keysFor(this.parts.length, key)
    return this.parts.map((part, i) => verb(part, keys[i] as string))
  }
}
