import { checkedAheadMs, checkedCost, type ReserveOptions } from '../arguments.js'
import { combined, type Decision, refusal } from '../decision/decision.js'
import { DecisionCounter } from '../decision/decision-counts.js'
import { publishDenial } from '../decision/diagnostics.js'
import { TopLists } from '../decision/hot-keys.js'
import { holdsPermits, isPermit } from '../decision/permit.js'
import { type Reservation, type Settling, TAKE, uncharged, WAIT } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import type { Hold, OpenOptions } from '../holds/hold.js'
import { keyInOrder, keysFor, ownKey } from '../key.js'
import type { BoundKey, Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from '../limiter.js'
import { checkChange, checkedPolicy } from '../policy/checked-policy.js'
import { pairedPolicies } from '../policy/paired-policies.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import { shownAs } from '../shown.js'
import { sumOfStats } from '../sum-of-stats.js'
import { type Clock, clockHandle, tickerOf } from '../time/clock.js'
import type { Duration } from '../time/duration.js'
import { FollowingWaits } from '../waiting/following-waits.js'
import { type Booking, type BookingService, type Moved, reservationOf, reserve, reserveBehind } from '../waiting/reserving.js'
import { Waiting } from '../waiting/waiting.js'
import { SharedName, WholePolicy } from './all-of-policy.js'
import { type Hashes, hashesOf, TakesTogether } from './all-of-takes.js'
import { high, low } from './fingerprint.js'
import type { MemoryBooking } from './memory-bookings.js'
import type { MemoryDecisions } from './memory-decisions.js'
import { followKey, type HoldingLimiter, MemoryHolds } from './memory-holds.js'
import type { MemoryHandle, MemoryLimiter } from './memory-limiter.js'
import { jointHold, MemoryPermit } from './memory-permit-limiter.js'
import type { PlannedParts } from './planned-parts.js'
import { snapshotOf } from './snapshot/memory-snapshot.js'

/** What a handle carries: one of each part, which share a memory. */
export interface AllOfHandle extends LimiterHandle {
  readonly parts: readonly MemoryHandle[]
  readonly name: SharedArrayBuffer
  readonly clock: ReturnType<typeof clockHandle>
}

/** What the parts have in common. */
export interface AllOfParts {
  readonly parts: readonly MemoryLimiter[]
  readonly name: string | SharedArrayBuffer
  readonly clock: Clock
  readonly hotKeys: number
  readonly maxWaiting: number
  /** Other policies for some keys of its levels. */
  readonly plans?: PlannedParts | undefined
}

/** A booking of every part. */
interface AllOfBooking extends Booking {
  readonly parts: readonly MemoryBooking[]
  readonly of: readonly MemoryLimiter[]
}

/** Several policies as one, in sections of one shared memory: charged together by one multi-word swap, or not at all. */
export class MemoryAllOfLimiter extends QueuedLimiter implements Limiter, BookingService, Settling {
  /** In the order of the policy; after an update in another order they are other arrays, as bookings know them by their places. */
  parts: readonly MemoryLimiter[]
  private readonly clock: Clock
  private readonly together: TakesTogether
  private readonly lists: TopLists
  private readonly waiting: Waiting<Decision>
  readonly plans: PlannedParts | undefined
  /** Of keys with plans. */
  private readonly following: FollowingWaits<string> | undefined
  /** Whether a part of it is a concurrency limit. */
  private readonly holdsPermits: boolean
  /** As all threads know it. */
  private readonly name: SharedName
  private readonly whole = new WholePolicy()
  /** Made for the first that is opened. */
  private holds: MemoryHolds | undefined
  private ownHolding: HoldingLimiter | undefined

  private readonly counter = new DecisionCounter()

  constructor({ parts, name, clock, hotKeys, maxWaiting, plans }: AllOfParts) {
    super()
    this.parts = parts
    this.name = new SharedName(name)
    this.clock = clock
    this.together = new TakesTogether(tickerOf(clock), this.name)
    this.lists = new TopLists(hotKeys)
    this.holdsPermits = parts.some((part) => holdsPermits(part.policy))
    const releases = { countOf: (key: Key) => this.countOf(key), words: () => parts.map((part) => part.releases()) }
    this.waiting = new Waiting({ service: this, clock, maxWaiting, releases })
    for (const part of parts) part.decisions.onRelease = (key) => this.waiting.released(key)
    this.plans = plans
    this.following = plans && new FollowingWaits((key) => plans.nameOf(this.parts, key), clock, true)
  }

  get policy(): Policy {
    const parts = this.parts.map((part) => part.policy)
    return this.whole.of(this.name.text, parts)
  }

  /** {@link policy} as it was when this limiter last decided; with the plans of a key. */
  policyOf(key?: Key): Policy {
    if (key !== undefined && this.plans !== undefined) return this.plans.policyOf(this.parts, this.inOrder(key), this.name.text)
    const parts = this.parts.map((part) => part.policyOf())
    return this.whole.of(this.name.text, parts)
  }

  take(key: Key, cost = 1): Decision {
    return this.decided(this.inOrder(key), cost)
  }

  /** {@link take} that can be settled. */
  [TAKE](key: Key, cost = 1): Reservation {
    const own = ownKey(this.inOrder(key))
    const of = this.partsOf(own)
    if (this.waiting.isQueued(own)) return uncharged(this.record(own, cost, this.refuse(own, cost)))
    const booking = this.taken(own, cost, of)
    this.record(own, cost, booking.decision)
    return reservationOf(this, booking)
  }

  peek(key: Key, cost = 1): Decision {
    return combined(this.eachKey(key, (part, own) => part.peek(own, cost)))
  }

  wait(key: Key, options?: WaitOptions): Promise<Decision> {
    const own = ownKey(this.inOrder(key))
    return this.begun(own, options, (given) => this.waiting.wait(own, given)).then((decision) =>
      this.record(own, options?.cost ?? 1, decision),
    )
  }

  /** {@link wait} that can be settled. */
  [WAIT](key: Key, options?: WaitOptions): Promise<Reservation> {
    const own = ownKey(this.inOrder(key))
    return this.begun(own, options, (given) =>
      this.waiting.waited(own, given, (answer, booking) => {
        this.record(own, given?.cost ?? 1, answer)
        return booking === undefined ? uncharged(answer) : reservationOf(this, booking, answer)
      }),
    )
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Reservation {
    checkedAheadMs(options)
    const own = this.inOrder(key)
    const reservation = this.waiting.isQueued(own) ? reserveBehind(this, own, cost) : reserve(this, own, cost)
    this.record(own, cost, { ...reservation.decision, allowed: reservation.allowed })
    return reservation
  }

  open(key: Key, options: OpenOptions = {}): Hold {
    this.holds ??= new MemoryHolds(this.holding)
    const own = ownKey(this.inOrder(key))
    const hold = this.holds.open(own, options)
    return this.plans === undefined ? hold : followKey(hold, () => this)
  }

  /** What work that is open here needs. */
  get holding(): HoldingLimiter {
    this.ownHolding ??= {
      holders: (own, before) => (before ? this.partsStill(own, before) : this.partsOf(own)).map((part) => part.decisions),
      // Plans are asked once a step: another answer would carry a key away from what was found first.
      hashed: (own) =>
        keysFor(this.parts.length, own).map((key) => {
          this.first.hash(key)
          return { key, low, high }
        }),
      isQueued: (own) => this.waiting.isQueued(own),
      refuse: (own, cost) => this.refuse(own, cost),
      wait: (own, of) => this.waited(own, of, (given) => this.waiting.wait(own, given)),
      record: (own, cost, decision) => this.record(own, cost, decision),
      freed: (own) => this.waiting.size > 0 && this.waiting.released(own),
    }
    return this.ownHolding
  }

  key(key: Key): BoundKey {
    const own = ownKey(this.inOrder(key))
    const keys = keysFor(this.parts.length, own)
    this.first.section.open.look()
    const hashes = hashesOf(this.first, keys)
    const peek = (cost: number): Decision =>
      combined(
        this.partsOf(own).map((part, i) =>
          part.decisions.peek(keys[i] as string, hashes[2 * i] as number, hashes[2 * i + 1] as number, cost),
        ),
      )
    const take = (cost = 1): Decision => this.decided(own, cost, hashes)
    return shownAs<BoundKey>({ key: own, take, peek: (cost = 1) => peek(cost) }, 'BoundKey', this.toJSON())
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
    const before = this.parts.map((part) => part.policyOf())
    const parts = pairedPolicies(before, policies, true).map((at) => this.parts[at as number] as MemoryLimiter)
    // Every step that can fail runs before the first change.
    for (const [i, part] of parts.entries()) checkChange(part.policy, policies[i] as Policy)
    const changes = parts.map((part, i) => part.changeTo(policies[i] as Policy))
    for (const change of changes) change()
    if (parts.some((part, i) => part !== this.parts[i])) this.parts = parts
    this.name.text = name
    this.waiting.released()
  }

  handle(): LimiterHandle {
    this.requireNoPlans('the functions and tables of which are of one thread: give threads a limiter over a store')
    const parts = this.parts.map((part) => part.handle() as MemoryHandle)
    const handle = { sluicegate: 1, parts, name: this.name.shared, clock: clockHandle(this.clock) } satisfies AllOfHandle
    return shownAs(handle as LimiterHandle, 'LimiterHandle', { algorithm: 'all-of' })
  }

  stats(): LimiterStats {
    const { all } = this
    const sum = sumOfStats(all)
    // All parts share one memory, which the sum counts once per part, as large as each knows it.
    const sizes = all.map((part) => part.memoryBytes)
    const memoryBytes = sizes.reduce((rest, size) => rest - size, sum.memoryBytes + Math.max(...sizes))
    return { ...sum, decisions: this.counter.of(this.name.text), memoryBytes }
  }

  hotKeys(n?: number): ReturnType<TopLists['top']> {
    this.first.section.open.look()
    return this.lists.top(n)
  }

  snapshot(): Uint8Array {
    this.requireNoPlans('of which nothing can be saved in memory: a store keeps what they have spent')
    const { secret, core } = this.first
    core.look()
    return snapshotOf({
      allOf: this.name.text,
      secret,
      sections: this.parts.map((part) => part.section),
      nowUs: () => this.first.decisions.nowUs(),
    })
  }

  close(): void {
    closeQueueOf(this)
    this.waiting.close()
    for (const part of this.all) part.close()
  }

  /** See {@link KeyHolder}. */
  get keyParts(): readonly MemoryLimiter[] {
    return this.parts
  }

  /** The part that has a key of the level of one of {@link parts} by now. */
  placeOf(part: MemoryLimiter, key: string): MemoryLimiter {
    return this.plans === undefined ? part : this.plans.stillAt(part, key)
  }

  // What waiting and reserving need. Nothing is booked ahead: the parts would be due at different times.

  book(key: Key, cost: number): AllOfBooking {
    return this.taken(key, cost, this.partsStill(key))
  }

  redeem({ decision }: Booking): Decision {
    return decision
  }

  giveBack(booking: AllOfBooking, tokens: number): Decision {
    return combined(booking.parts.map((part, i) => (booking.of[i] as MemoryLimiter).giveBack(part, tokens)))
  }

  /** Each part by itself: one may have gone elsewhere. */
  movedTo(booking: Booking): Moved | undefined {
    const { parts, of } = booking as AllOfBooking
    const places = parts.map((part, i) => (of[i] as MemoryLimiter).placeOf(part))
    if (places.every((place, i) => place.booking === parts[i])) return undefined
    const each = (verb: (limiter: MemoryLimiter, part: MemoryBooking) => Decision): Decision =>
      combined(places.map((place) => verb(place.limiter, place.booking)))
    const service: Moved['service'] = {
      giveBack: (_, tokens) => each((limiter, part) => limiter.giveBack(part, tokens)),
      penalize: (_, tokens) => each((limiter, part) => limiter.chargeBeyond(part, tokens)),
      peek: () => each((limiter, part) => limiter.peek(part.key)),
    }
    return { service, booking }
  }

  refuse(key: Key, cost: number): Decision {
    const keys = keysFor(this.parts.length, key)
    const decision = refusal(combined(this.partsStill(key).map((part, i) => part.peek(keys[i] as string, cost))))
    return this.holdsPermits ? new MemoryPermit(decision) : decision
  }

  /** A take that is counted and published. */
  private decided(key: Key, cost: number, hashes?: Hashes): Decision {
    const of = this.partsOf(key)
    return this.record(key, cost, this.waiting.isQueued(key) ? this.refuse(key, cost) : this.taken(key, cost, of, hashes).decision)
  }

  private record(key: Key, cost: number, decision: Decision): Decision {
    this.counter.count(decision)
    this.lists.count(key, decision.allowed)
    publishDenial(key, cost, decision)
    return decision
  }

  private taken(key: Key, cost: number, of: readonly MemoryLimiter[], hashes?: Hashes): AllOfBooking {
    const tokens = checkedCost(cost)
    if (typeof key !== 'string' && hashes === undefined) keysFor(this.parts.length, key)
    const { isCharged, nowUs, bookings } = this.together.take(of, key, tokens, hashes)
    return isCharged ? this.charged(key, tokens, nowUs, bookings, of) : this.denied(key, tokens, nowUs, bookings, of)
  }

  private charged(key: Key, cost: number, nowUs: number, parts: readonly MemoryBooking[], of: readonly MemoryLimiter[]): AllOfBooking {
    const whole = combined(parts.map(({ decision }) => decision))
    const decision = this.holdsPermits ? new MemoryPermit(whole, jointHold((whole.parts ?? []).filter(isPermit))) : whole
    return { key, cost, allowed: true, bookedUs: nowUs, atUs: nowUs, maybeSooner: false, decision, parts, of }
  }

  private denied(key: Key, cost: number, nowUs: number, parts: readonly MemoryBooking[], of: readonly MemoryLimiter[]): AllOfBooking {
    // Parts that allowed the take show their current state: nothing was charged.
    const decisions = parts.map((part, i) => (part.allowed ? (of[i] as MemoryLimiter).peek(part.key, cost) : part.decision))
    const whole = combined(decisions)
    const decision = this.holdsPermits ? new MemoryPermit(whole) : whole
    const atUs = nowUs + decision.retryAfterMs * 1000
    return { key, cost, allowed: false, bookedUs: nowUs, atUs, maybeSooner: this.holdsPermits, decision, parts, of }
  }

  /** A change of each part that may return tokens: waiters ask again after it. */
  private released(key: Key, verb: (part: MemoryLimiter, own: string) => Decision): Decision {
    const own = this.inOrder(key)
    const decision = combined(this.eachKey(own, verb))
    if (this.waiting.queued > 0) this.waiting.released(own)
    return decision
  }

  private countOf(key: Key): () => number {
    const keys = keysFor(this.parts.length, key)
    const counts = this.partsStill(key).map((part, i) => part.countOf(keys[i] as string))
    return () => counts.reduce((sum, count) => (sum + count()) | 0, 0)
  }

  private inOrder(key: Key): Key {
    return typeof key === 'string'
      ? key
      : keyInOrder(
          this.parts.map((part) => part.policyOf().name),
          key,
        )
  }

  /** For each level the part that has its key. */
  private partsOf(key: Key): readonly MemoryLimiter[] {
    return this.plans === undefined ? this.parts : this.plans.of(this.parts, key)
  }

  /** The same for what began earlier: a plan that cannot be known changes nothing. */
  private partsStill(key: Key, before?: readonly MemoryDecisions[]): readonly MemoryLimiter[] {
    return this.plans === undefined ? this.parts : this.plans.still(this.parts, key, before)
  }

  /** Those of all plans, too. */
  private get all(): readonly MemoryLimiter[] {
    return this.plans === undefined ? this.parts : [...this.parts, ...this.plans.all]
  }

  /** A wait of a caller, who hears of a plan that cannot be known. */
  private begun<Result>(key: Key, options: WaitOptions | undefined, wait: (options?: WaitOptions) => Promise<Result>): Promise<Result> {
    try {
      this.partsOf(key)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.waited(key, options, wait)
  }

  /** A wait, which goes on under the plans that its key has by then. */
  private waited<Result>(key: Key, options: WaitOptions | undefined, wait: (options?: WaitOptions) => Promise<Result>): Promise<Result> {
    return this.following === undefined ? wait(options) : this.following.wait(key, options, (_, given) => wait(given))
  }

  /** @throws {PolicyError} `OPTION_INVALID` */
  private requireNoPlans(why: string): void {
    if (this.plans !== undefined) throw new PolicyError('OPTION_INVALID', 'policyFor', undefined, why)
  }

  private get first(): MemoryLimiter {
    return this.parts[0] as MemoryLimiter
  }

  private eachKey<Each>(key: Key, verb: (part: MemoryLimiter, own: string) => Each): Each[] {
    const own = this.inOrder(key)
    const keys = keysFor(this.parts.length, own)
    return this.partsOf(own).map((part, i) => verb(part, keys[i] as string))
  }
}
