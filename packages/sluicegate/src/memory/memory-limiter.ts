import { blockUs, checkedAheadMs, checkedTokens, type ReserveOptions } from '../arguments.js'
import { type Decision, refusal } from '../decision/decision.js'
import { publishDenial } from '../decision/diagnostics.js'
import { type HotKeys, TopLists } from '../decision/hot-keys.js'
import { type Reservation, type Settling, TAKE, uncharged, WAIT } from '../decision/reservation.js'
import type { Hold, OpenOptions } from '../holds/hold.js'
import { checkKey } from '../key.js'
import type { BoundKey, Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from '../limiter.js'
import { checkChange, checkedPolicy } from '../policy/checked-policy.js'
import type { Algorithm, Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import { Shown, shownAs } from '../shown.js'
import { type Clock, clockHandle, tickerOf } from '../time/clock.js'
import type { Duration } from '../time/duration.js'
import { isBookedAhead, isClosedAhead } from '../waiting/booking-limits.js'
import { type ReleaseWords, releaseCount } from '../waiting/release-watch.js'
import {
  type Booking,
  type BookingService,
  type Moved,
  type ReservationService,
  reservationOf,
  reserve,
  reserveBehind,
} from '../waiting/reserving.js'
import { Waiting } from '../waiting/waiting.js'
import { fingerprint, high, low } from './fingerprint.js'
import { KeyMoves, numbersOf } from './key-moves.js'
import { type MemoryBooking, MemoryBookings } from './memory-bookings.js'
import { MemoryDecisions } from './memory-decisions.js'
import { type HoldingLimiter, MemoryHolds } from './memory-holds.js'
import type { Core, CoreHost, HeldUntil, OpenCore } from './open-core.js'
import { PolicyChange, untouchedBytes } from './policy-record.js'
import { type SnapshotSection, snapshotOf } from './snapshot/memory-snapshot.js'

/** What a handle carries. Everything here is structured-clonable. */
export interface MemoryHandle<Answer extends Decision = Decision> extends LimiterHandle<Answer> {
  readonly memory: WebAssembly.Memory
  readonly section: number
  readonly algorithm: Algorithm
  readonly secret: readonly [number, number]
  readonly clock: ReturnType<typeof clockHandle>
}

/** What a limiter in memory is made of; `open` returns this thread's core. */
export interface MemoryLimiterParts {
  readonly open: (host: CoreHost) => OpenCore
  readonly secret: readonly [number, number]
  readonly clock: Clock
  /** Size of the top lists; 0 for none. */
  readonly hotKeys: number
  /** How many callers may wait at once. */
  readonly maxWaiting: number
}

/**
 * The limiter in shared memory: it hashes keys. {@link MemoryDecisions} decides, {@link MemoryBookings} books ahead, {@link Waiting} waits.
 */
export class MemoryLimiter<Answer extends Decision = Decision>
  extends QueuedLimiter
  implements Limiter<Answer>, BookingService<Answer>, Settling<Answer>
{
  /** Decides about keys whose fingerprints are known. */
  readonly decisions: MemoryDecisions
  readonly bookings: MemoryBookings
  protected readonly waiting: Waiting<Answer>
  /** For what is settled later: while waiters have booked, nothing comes back of what was charged before them, so they step aside. */
  private readonly settling: ReservationService = {
    book: (key, cost, mostMs) => this.book(key, cost, mostMs),
    giveBack: (booking, tokens) => {
      const own = booking as MemoryBooking<Answer>
      const left = this.bookings.isOfNow(own) ? this.waiting.gift(own.key, tokens) : tokens
      return left === 0 ? this.peek(own.key) : this.waiting.aside(own.key, () => this.giveBack(own, left))
    },
    peek: (key, cost) => this.peek(key, cost),
    penalize: (key, tokens) => this.penalize(key, tokens),
    movedTo: (booking) => this.movedTo(booking),
  }
  private readonly moves = new KeyMoves<MemoryLimiter>()
  private readonly clock: Clock
  readonly #k0: number
  readonly #k1: number
  /** Undefined without the option `hotKeys`. */
  private readonly lists: TopLists | undefined
  private readonly opened: OpenCore
  /** Made for the first that is opened. */
  private holds: MemoryHolds | undefined
  private ownHolding: HoldingLimiter | undefined

  /** Initializes the section with `policy`, or joins one that another thread has initialized. */
  constructor(parts: MemoryLimiterParts, policy?: Policy, Decisions: typeof MemoryDecisions = MemoryDecisions) {
    super()
    this.clock = parts.clock
    ;[this.#k0, this.#k1] = parts.secret
    if (parts.hotKeys > 0) this.lists = new TopLists(parts.hotKeys)
    this.decisions = new Decisions(parts.open, tickerOf(parts.clock), policy)
    this.decisions.onRelease = (key) => this.waiting.released(key)
    this.opened = this.decisions.opened
    this.bookings = new MemoryBookings(this.decisions)
    this.waiting = new Waiting<Answer>({
      service: this,
      clock: parts.clock,
      maxWaiting: parts.maxWaiting,
      releases: { countOf: (key) => this.countOf(key as string), words: () => [this.releases()] },
    })
  }

  // A take, from top to bottom: hash the key here; decide in the core and decode the answer in MemoryDecisions.

  take(key: Key, cost = 1): Answer {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
    return this.takeBound(key, low, high, cost)
  }

  /** {@link take} for a key whose fingerprint is known. It does not overtake waiters of this thread. */
  takeBound(key: string, low: number, high: number, cost: number): Answer {
    if (this.waiting.isQueued(key)) return this.record(key, cost, this.refuse(key, cost))
    const decision = this.decisions.take(key, low, high, cost)
    if (this.lists !== undefined) this.lists.count(key, decision.allowed)
    return decision as Answer
  }

  /** {@link take} that can be settled. */
  [TAKE](key: Key, cost = 1): Reservation<'now', Answer> {
    this.hash(key as string)
    if (this.waiting.isQueued(key)) return uncharged(this.record(key, cost, this.refuse(key, cost)))
    const booking = this.bookings.take(key as string, low, high, cost)
    this.lists?.count(key, booking.allowed)
    return reservationOf(this.settling, booking as MemoryBooking<Answer>)
  }

  // The other verbs.

  peek(key: Key, cost = 1): Decision {
    this.hash(key as string)
    return this.decisions.peek(key as string, low, high, cost)
  }

  wait(key: Key, options?: WaitOptions): Promise<Answer> {
    const answer = this.waiting.wait(key, options)
    return answer.then((decision) => this.record(key, options?.cost ?? 1, decision))
  }

  /** {@link wait} that can be settled. */
  [WAIT](key: Key, options?: WaitOptions): Promise<Reservation<'now', Answer>> {
    return this.waiting.waited(key, options, (answer, booking) => {
      this.record(key, options?.cost ?? 1, answer)
      return booking === undefined ? uncharged(answer) : reservationOf(this.settling, booking, answer)
    })
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Reservation {
    const mostMs = checkedAheadMs(options)
    const reservation = this.waiting.isQueued(key) ? reserveBehind(this, key, cost) : reserve(this.settling, key, cost, mostMs)
    this.record(key, cost, { ...reservation.decision, allowed: reservation.allowed })
    return reservation
  }

  open(key: Key, options: OpenOptions = {}): Hold {
    this.holds ??= new MemoryHolds(this.holding)
    return this.holds.open(key, options)
  }

  /** What work that is open here needs. */
  get holding(): HoldingLimiter {
    this.ownHolding ??= {
      holders: () => [this.decisions],
      hashed: (own) => {
        this.hash(own as string)
        return [{ key: own as string, low, high }]
      },
      isQueued: (own) => this.waiting.isQueued(own),
      refuse: (own, cost) => this.refuse(own, cost),
      wait: (own, of) => this.waiting.wait(own, of),
      record: (own, cost, decision) => this.record(own, cost, decision),
      freed: (own) => this.waiting.size > 0 && this.waiting.released(own),
    }
    return this.ownHolding
  }

  key(key: Key): BoundKey<Answer> {
    checkKey(key)
    this.opened.look()
    fingerprint(key, this.#k0, this.#k1)
    return new MemoryBoundKey<Answer>(this, key, low, high)
  }

  refund(key: Key, tokens: number): Decision {
    const { refund } = this.opened.core
    checkKey(key)
    const given = checkedTokens(tokens)
    const left = isClosedAhead(this.decisions.decoder.policy) ? this.waiting.gift(key, given) : given
    return left === 0 ? this.peek(key) : this.released(key, (nowUs) => refund(low, high, nowUs, left))
  }

  penalize(key: Key, tokens: number): Decision {
    const { penalize } = this.opened.core
    return this.change(key, (nowUs) => penalize(low, high, nowUs, checkedTokens(tokens)))
  }

  block(key: Key, duration: Duration): Decision {
    const us = blockUs(duration)
    const { ban } = this.opened.core
    return this.released(key, (nowUs) => ban(low, high, nowUs, us))
  }

  reset(key: Key): Decision {
    const { ban, reset } = this.opened.core
    this.change(key, (nowUs) => ban(low, high, nowUs, 0))
    return this.released(key, (nowUs) => {
      this.moves.renewed(key as string, nowUs)
      return reset(low, high, nowUs)
    })
  }

  /** A change that may return tokens: waiters of the key ask again after it. */
  private released(key: Key, verb: (nowUs: number) => number): Decision {
    const decision = this.change(key, verb)
    if (this.waiting.size > 0) this.decisions.onRelease(key as string)
    return decision
  }

  private change(key: Key, verb: (nowUs: number) => number): Decision {
    checkKey(key)
    const nowUs = this.decisions.nowUs()
    fingerprint(key, this.#k0, this.#k1)
    this.decisions.answered(verb(nowUs), key)
    const decision = this.decisions.peek(key, low, high, 1, nowUs)
    this.decisions.events.publish()
    return decision
  }

  /** Counts a decision for the top lists and publishes a denial. */
  private record<Made extends Decision>(key: Key, cost: number, decision: Made): Made {
    this.decisions.counter.count(decision)
    this.lists?.count(key, decision.allowed)
    publishDenial(key, cost, decision)
    return decision
  }

  // The policy and the limiter as a whole.

  get policy(): Policy {
    this.opened.look()
    return this.decisions.decoder.policy
  }

  /** {@link policy} as it was when this limiter last decided. */
  policyOf(): Policy {
    return this.decisions.decoder.policy
  }

  update(policy: Policy): void {
    this.changeTo(policy)()
  }

  /** {@link update} in two steps: everything that can fail runs now, the change itself when the returned function is called. */
  changeTo(policy: Policy): () => void {
    const next = checkedPolicy(policy)
    checkChange(this.policy, next)
    this.opened.core.prepare()
    const change = new PolicyChange(this.opened, next)
    return () => {
      const bookAgain = this.waiting.lift()
      try {
        // Read last: takes of other threads under the old policy after this reading count as taken before it.
        change.publish(this.decisions.ticker.read())
      } finally {
        bookAgain()
      }
      if (this.waiting.queued > 0) this.waiting.released()
    }
  }

  handle(): LimiterHandle<Answer> {
    this.opened.look()
    const { memory, section } = this.opened
    this.opened.core.setAlone(false)
    const { algorithm } = this.decisions.decoder.policy
    const clock = clockHandle(this.clock)
    const handle: MemoryHandle<Answer> = { sluicegate: 1, memory, section, algorithm, secret: [this.#k0, this.#k1], clock }
    return shownAs(handle, 'LimiterHandle', { algorithm })
  }

  stats(): LimiterStats {
    this.opened.look()
    const { opened } = this
    const decisions = this.decisions.counter.of(this.decisions.decoder.policy.name)
    const memoryBytes = this.memoryBytes - (opened.later?.untouchedBytes ?? untouchedBytes(opened))
    return { decisions, ...opened.counters(), memoryBytes }
  }

  hotKeys(n?: number): HotKeys {
    this.opened.look()
    return (this.lists ?? new TopLists(0)).top(n)
  }

  snapshot(): Uint8Array {
    this.opened.look()
    return snapshotOf({ secret: this.secret, sections: [this.section], nowUs: () => this.decisions.nowUs() })
  }

  close(): void {
    closeQueueOf(this)
    this.waiting.close()
    this.opened.close()
  }

  // What waiting and reserving need.

  book(key: Key, cost: number, mostMs: number): MemoryBooking<Answer> {
    this.hash(key as string)
    const booking = this.bookings.book(key as string, low, high, cost, Math.min(mostMs * 1000, Number.MAX_SAFE_INTEGER))
    return booking as MemoryBooking<Answer>
  }

  redeem(booking: MemoryBooking<Answer>): Answer {
    return this.bookings.redeem(booking) as Answer
  }

  giveBack(booking: MemoryBooking<Answer>, tokens: number): Decision {
    return this.bookings.giveBack(booking, tokens)
  }

  unbook(booking: MemoryBooking<Answer>): boolean {
    return this.bookings.unbook(booking)
  }

  isLate(booking: MemoryBooking<Answer>): boolean {
    return this.bookings.isLate(booking)
  }

  refuse(key: Key, cost: number): Answer {
    return refusal(this.peek(key, cost)) as Answer
  }

  bookedPolicy(): Policy | undefined {
    return isBookedAhead(this.decisions.decoder.policy) ? this.decisions.decoder.policy : undefined
  }

  // Keys that come and go.

  /** See {@link KeyHolder}. */
  get keyParts(): readonly MemoryLimiter[] {
    return [this as unknown as MemoryLimiter]
  }

  /** Whether the key is in the table: it was charged here, or loaded, and no other key has its place since. */
  hasKey(key: string): boolean {
    this.hash(key)
    return this.opened.hasKey(low, high)
  }

  /**
   * A key as bytes, for {@link loadKey} of any limiter whose policy has the same algorithm; undefined for a key that owes nothing. `takesOut`: it
   * leaves this limiter in the same moment.
   */
  saveKey(key: string, takesOut = false): Uint8Array | undefined {
    const nowUs = this.decisions.nowUs()
    this.hash(key)
    return this.opened.saveKey(low, high, nowUs, takesOut, (answer) => this.decisions.answered(answer, key))
  }

  /**
   * Adds what a saved key had spent, and its block. As after an update, at most the burst is spent of a policy with other numbers.
   *
   * @returns false when the bytes are no saved key of this algorithm: nothing has changed then.
   * @throws {StoreError} `TABLE_FULL`, `CONTENTION`
   */
  loadKey(key: string, bytes: Uint8Array): boolean {
    const nowUs = this.decisions.nowUs()
    this.hash(key)
    return this.opened.loadKey(low, high, nowUs, bytes, (answer) => this.decisions.answered(answer, key)) !== undefined
  }

  /** Whole tokens that a key had spent which was saved here. */
  spentInSaved(bytes: Uint8Array): number {
    return this.opened.readKey(this.decisions.nowUs(), bytes).spent
  }

  /** The key has gone to another limiter. @param isWhole whether all that it had spent went along. */
  moved(key: string, to: MemoryLimiter, isWhole: boolean): void {
    const [before, after] = [numbersOf(this.decisions), numbersOf(to.decisions)]
    this.moves.left(key, { to, atUs: this.decisions.nowUs(), before, after, isWhole })
    to.moves.cameBack(key)
  }

  /** Where a booking is that was made here, and what is left of it there. */
  placeOf(booking: MemoryBooking): { readonly limiter: MemoryLimiter; readonly booking: MemoryBooking } {
    const move = this.moves.of(booking)
    if (move?.to === undefined) return { limiter: this as unknown as MemoryLimiter, booking: move?.booking ?? booking }
    move.to.hash(booking.key as string)
    return move.to.placeOf({ ...move.booking, low, high })
  }

  /** {@link ReservationService.movedTo} */
  movedTo(booking: Booking): Moved | undefined {
    const { limiter, booking: moved } = this.placeOf(booking as MemoryBooking)
    if (moved === booking) return undefined
    return { service: { ...limiter.settling, penalize: (_, tokens) => limiter.chargeBeyond(moved, tokens) }, booking: moved }
  }

  /** What a booking cost beyond what it was made for. A key that was forgotten and is not here is elsewhere, and begins no second account. */
  chargeBeyond(booking: MemoryBooking, tokens: number): Decision {
    const key = booking.key as string
    return this.moves.hasForgotten(booking) && !this.hasKey(key) ? this.peek(key) : this.penalize(key, tokens)
  }

  /** {@link peek}, whatever is held. */
  peekAlone(key: string): Decision {
    this.hash(key)
    return this.decisions.peekAlone(key, low, high, 1, this.decisions.nowUs())
  }

  /** Adds what a key of another algorithm had spent, its block, and what is held of it, whatever it owes; the last where there is room. @throws {StoreError} */
  carryIn(key: string, bytes: Uint8Array, from: MemoryLimiter): void {
    const nowUs = this.decisions.nowUs()
    const { spent, bannedUs, held } = from.opened.readKey(nowUs, bytes)
    const owed = Math.min(spent, this.policyOf().burst)
    if (owed > 0) this.penalize(key, owed)
    if (bannedUs > nowUs) this.block(key, (bannedUs - nowUs) / 1000)
    this.carryHeld(key, held)
  }

  /** Holds what was held of a key elsewhere, whatever it owes; nothing where there is no room. @throws {StoreError} `CONTENTION` */
  carryHeld(key: string, held: readonly HeldUntil[]): void {
    this.hash(key)
    const nowUs = this.decisions.nowUs()
    for (const { tokens, endUs } of held) this.decisions.answered(this.opened.core.carryHold(low, high, nowUs, tokens, endUs), key)
  }

  // What limiters of several sections need of each of them.

  /** This thread's core. */
  get core(): Core {
    return this.opened.core
  }

  /** Where releases are counted. */
  releases(): ReleaseWords {
    return this.opened.releases()
  }

  /** A count that changes with every release, in any thread, that `key` may profit from. */
  countOf(key: string): () => number {
    this.hash(key)
    return releaseCount(this.releases(), high)
  }

  /** Its section of the memory, and the policy there. */
  get section(): SnapshotSection {
    return { open: this.opened, policy: () => this.decisions.decoder.policy }
  }

  /** Fills its table, which nobody has used yet. @returns where the bytes end that are read from `begin` on; undefined if they are none of it. */
  load(bytes: Uint8Array, begin: number): number | undefined {
    return this.opened.loadTable(this.decisions.nowUs(), bytes, begin)
  }

  /** Bytes of the whole memory, unused parts included. */
  get memoryBytes(): number {
    return this.opened.later?.bytes ?? this.opened.memory.buffer.byteLength
  }

  get secret(): readonly [number, number] {
    return [this.#k0, this.#k1]
  }

  /** The key's hash, in `low` and `high` of fingerprint.ts. */
  hash(key: string): void {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
  }
}

/** A key of a limiter in memory whose fingerprint is kept. */
class MemoryBoundKey<Answer extends Decision> extends Shown implements BoundKey<Answer> {
  readonly key: string
  private readonly limiter: MemoryLimiter<Answer>
  private readonly low: number
  private readonly high: number

  constructor(limiter: MemoryLimiter<Answer>, key: string, low: number, high: number) {
    super()
    this.key = key
    this.limiter = limiter
    this.low = low
    this.high = high
  }

  toJSON(): object {
    return this.limiter.toJSON()
  }

  take(cost = 1): Answer {
    return this.limiter.takeBound(this.key, this.low, this.high, cost)
  }

  peek(cost = 1): Decision {
    return this.limiter.decisions.peek(this.key, this.low, this.high, cost)
  }
}
