import { blockUs, checkedCost, checkedTokens, checkKey } from '../arguments.js'
import { type Clock, clockHandle, type Ticker, tickerOf } from '../clock.js'
import { refusal } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import { contentions, denials, publishDenial } from '../diagnostics.js'
import { StoreError } from '../errors.js'
import { type HotKeys, TopLists } from '../hot-keys.js'
import type { BoundKey, Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from '../limiter.js'
import { minuteWindow } from '../policy/calendar.js'
import { checkChange, checkedPolicy } from '../policy/checked-policy.js'
import { CountDecoder, type DecisionDecoder, RateDecoder } from '../policy/decision-decoder.js'
import type { Duration } from '../policy/duration.js'
import type { Algorithm, Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import type { Reservation } from '../reservation.js'
import { shownAs } from '../shown.js'
import { isBookedAhead } from '../waiting/bounded-bookings.js'
import { type ReleaseWords, releaseCount } from '../waiting/release-watch.js'
import { type BookingService, reserve, reserveBehind } from '../waiting/reserving.js'
import { Waiting } from '../waiting/waiting.js'
import type { Core, CoreHost } from './core.js'
import { fingerprint, high, low } from './fingerprint.js'
import { laterReading } from './later-reading.js'
import { type BookedLimiter, type MemoryBooking, MemoryBookings } from './memory-bookings.js'
import { MemoryBoundKey } from './memory-bound-key.js'
import type { OpenCore } from './open-core.js'
import { calendarIn, PolicyChange, publishedPolicy, untouchedBytes } from './policy-record.js'
import { type SnapshotSection, snapshotOf } from './snapshot/memory-snapshot.js'
import { TableEvents } from './table-events.js'

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
  readonly maxWaiters: number
}

/**
 * The limiter in shared memory: hashes keys, reads the clock, and decodes the core's answers into decisions or errors.
 * {@link MemoryBookings} books ahead, {@link Waiting} waits.
 */
export class MemoryLimiter<Answer extends Decision = Decision>
  extends QueuedLimiter
  implements Limiter<Answer>, BookingService<Answer>, BookedLimiter
{
  readonly opened: OpenCore
  readonly ticker: Ticker
  /** Set by the core's first callback, before the constructor ends. */
  decoder!: DecisionDecoder
  readonly events = new TableEvents()
  readonly bookings: MemoryBookings
  protected readonly waiting: Waiting<Answer>
  private readonly clock: Clock
  readonly #k0: number
  readonly #k1: number
  /** Undefined without the option `hotKeys`. */
  private readonly lists: TopLists | undefined
  /** Called after this thread has released something that others may wait for. */
  onRelease: (key: string) => void = (key) => this.waiting.released(key)

  /** Initializes the section with `policy`, or joins one that another thread has initialized. */
  constructor(parts: MemoryLimiterParts, policy?: Policy) {
    super()
    this.clock = parts.clock
    this.ticker = tickerOf(parts.clock)
    ;[this.#k0, this.#k1] = parts.secret
    if (parts.hotKeys > 0) this.lists = new TopLists(parts.hotKeys)
    this.opened = parts.open({
      policyChanged: () => {
        const published = publishedPolicy(this.opened)
        // If undefined, the core calls again for a later policy.
        if (published !== undefined) this.decoder = this.decoderFor(published)
      },
      calendarWindowStart: (record, us) => minuteWindow(calendarIn(this.opened, record), us).startUs,
      calendarWindowEnd: (record, us) => minuteWindow(calendarIn(this.opened, record), us).endUs,
    })
    const { core, section } = this.opened
    if (policy === undefined) core.attach(section)
    else new PolicyChange(this.opened, policy).publish(this.nowUs())
    // `take` of the core is the fast path of buckets and GCRA; the other algorithms need `takeAny`.
    if (!(this.decoder instanceof RateDecoder)) core.take = core.takeAny
    this.bookings = new MemoryBookings(this)
    this.waiting = new Waiting<Answer>({
      service: this,
      clock: parts.clock,
      maxWaiters: parts.maxWaiters,
      releases: { countOf: (key) => this.countOf(key as string), words: () => [this.releases()] },
    })
  }

  // A take, from top to bottom: hash the key, decide in the core, decode the answer.

  take(key: Key, cost = 1): Answer {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
    return this.takeBound(key, low, high, cost)
  }

  /** {@link take} for a key whose fingerprint is known. It does not overtake waiters of this thread. */
  takeBound(key: string, low: number, high: number, cost: number): Answer {
    if (this.waiting.isQueued(key)) return this.record(key, cost, this.refuse(key, cost))
    const decision = this.takeHashed(key, low, high, cost)
    if (this.lists !== undefined) this.lists.count(key, decision.allowed)
    return decision as Answer
  }

  /** Decides in the core: an answer >= 0 is the debt after an allowed take. */
  takeHashed(key: string, low: number, high: number, cost: number): Decision {
    const tokens = typeof cost === 'number' && (cost | 0) === cost && cost > 0 ? cost : checkedCost(cost)
    const nowUs = this.nowUs()
    const answer = this.opened.core.take(low, high, nowUs, tokens)
    return answer >= 0 ? this.decoder.allowed(answer) : this.notAllowed(key, low, high, nowUs, tokens, answer)
  }

  /** A negative answer is -1 minus the debt of a denied take; NaN has a reason of its own. */
  private notAllowed(key: string, low: number, high: number, nowUs: number, cost: number, answer: number): Decision {
    const decision =
      answer < 0
        ? this.decoder.denied(-1 - answer, cost)
        : this.withPermit(this.unanswered(key, low, high, nowUs, cost), key, low, high, cost)
    this.events.publish()
    publishDenial(key, cost, decision)
    return decision
  }

  /** A take that the core answered with a reason instead of a debt. */
  unanswered(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    const detail = this.opened.core.detailOfUnanswered()
    switch (this.opened.reason()) {
      case 'EVICTED':
        this.noteEviction(key)
        return detail >= 0 ? this.decoder.allowed(detail) : this.decoder.denied(-1 - detail, cost)
      case 'BANNED':
        return this.decoder.foreseen(this.answered(this.opened.core.peek(low, high, nowUs, cost), key), cost, Math.ceil(detail / 1000))
      case 'LATE':
        return this.takenLater(key, low, high, nowUs, cost)
      case 'REFUSED':
        return this.withoutRoom(key, this.decoder.refused(cost, Math.ceil(detail / 1000)))
      case 'OVERFLOWED':
        return this.withoutRoom(key, this.decoder.overflowed(Math.ceil(detail / 1000)))
      case 'CONTENDED':
        throw this.contended(key)
    }
  }

  /** A take that the core denied because the key was changed, or another evicted, at a later clock reading. */
  private takenLater(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    let readUs = nowUs
    for (let readings = 0; ; readings++) {
      const denied = this.decoder.denied(this.opened.core.detailOfUnanswered(), cost)
      const laterUs = laterReading(this.ticker, readUs, readings, denied)
      if (laterUs === undefined) return denied
      readUs = laterUs
      const answer = this.opened.core.take(low, high, readUs, cost)
      if (answer >= 0) return this.decoder.allowed(answer)
      if (answer < 0) return this.decoder.denied(-1 - answer, cost)
      if (this.opened.reason() !== 'LATE') return this.unanswered(key, low, high, readUs, cost)
    }
  }

  /** The answer for a new key that found no room. */
  private withoutRoom(key: string, decision: Decision): Decision {
    this.events.full(this.decoder.policy.name, key, decision.allowed, () => this.opened.counters().keys)
    return decision
  }

  noteEviction(key: string): void {
    const { core } = this.opened
    this.events.evicted(this.decoder.policy.name, key, () => core.forgotten() / this.decoder.unitsPerToken)
  }

  /** The decision with its permit, if the policy gives permits. Call it before the next call of the core. */
  withPermit(decision: Decision, _key: string, _low: number, _high: number, _cost: number): Decision {
    return decision
  }

  private contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.decoder.policy.name, key })
    return new StoreError('CONTENTION', 'other threads kept changing this key, and the call gave up after a bounded wait: call again')
  }

  // The other verbs.

  peek(key: Key, cost = 1): Decision {
    this.hash(key as string)
    return this.peekHashed(key as string, low, high, cost)
  }

  /** Peek, for a key whose fingerprint is known. */
  peekHashed(key: string, low: number, high: number, cost: number, nowUs = this.nowUs()): Decision {
    const tokens = checkedCost(cost)
    const debt = this.answered(this.opened.core.peek(low, high, nowUs, tokens), key)
    const blockMs = Math.ceil(this.answered(this.opened.core.banLeft(low, high, nowUs), key) / 1000)
    return this.decoder.foreseen(debt, tokens, blockMs)
  }

  /** The answer of any other call. @throws {StoreError} `TABLE_FULL` or `CONTENTION` if there is none. */
  answered(answer: number, key: string): number {
    if (answer >= 0) return answer
    const reason = this.opened.reason()
    if (reason === 'REFUSED') {
      throw new StoreError('TABLE_FULL', 'the table has no room for this key, because every key near it has debt: raise maxKeys or growTo')
    }
    if (reason !== 'EVICTED') throw this.contended(key)
    this.noteEviction(key)
    return this.opened.core.detailOfUnanswered()
  }

  wait(key: Key, options?: WaitOptions): Promise<Answer> {
    const answer = this.waiting.wait(key, options)
    if (this.lists === undefined && !denials.hasSubscribers) return answer
    return answer.then((decision) => this.record(key, options?.cost ?? 1, decision))
  }

  reserve(key: Key, cost: number): Reservation {
    const reservation = this.waiting.isQueued(key) ? reserveBehind(this, key, cost) : reserve(this, key, cost)
    if (this.lists !== undefined || denials.hasSubscribers)
      this.record(key, cost, { ...reservation.decision, allowed: reservation.allowed })
    return reservation
  }

  key(key: Key): BoundKey<Answer> {
    checkKey(key)
    this.opened.core.look()
    fingerprint(key, this.#k0, this.#k1)
    return new MemoryBoundKey<Answer>(this, key, low, high)
  }

  refund(key: Key, tokens: number): Decision {
    const { refund } = this.opened.core
    return this.released(key, (nowUs) => refund(low, high, nowUs, checkedTokens(tokens)))
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
    return this.released(key, (nowUs) => reset(low, high, nowUs))
  }

  /** A change that may return tokens: waiters of the key ask again after it. */
  private released(key: Key, verb: (nowUs: number) => number): Decision {
    const decision = this.change(key, verb)
    if (this.waiting.queued > 0) this.onRelease(key as string)
    return decision
  }

  private change(key: Key, verb: (nowUs: number) => number): Decision {
    checkKey(key)
    const nowUs = this.nowUs()
    fingerprint(key, this.#k0, this.#k1)
    this.answered(verb(nowUs), key)
    const decision = this.peekHashed(key, low, high, 1, nowUs)
    this.events.publish()
    return decision
  }

  /** Counts a decision for the top lists and publishes a denial. */
  private record<Made extends Decision>(key: Key, cost: number, decision: Made): Made {
    this.lists?.count(key, decision.allowed)
    publishDenial(key, cost, decision)
    return decision
  }

  // The policy and the limiter as a whole.

  get policy(): Policy {
    this.opened.core.look()
    return this.decoder.policy
  }

  /** {@link policy} as it was when this limiter last decided. */
  policyOf(): Policy {
    return this.decoder.policy
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
      // Read last: takes of other threads under the old policy after this reading count as taken before it.
      change.publish(this.ticker.read())
      if (this.waiting.queued > 0) this.waiting.released()
    }
  }

  private decoderFor(policy: Policy): DecisionDecoder {
    const isRate = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra'
    return isRate ? new RateDecoder(policy) : new CountDecoder(policy, this.opened.core)
  }

  handle(): LimiterHandle<Answer> {
    this.opened.core.look()
    const { memory, section } = this.opened
    const { algorithm } = this.decoder.policy
    const clock = clockHandle(this.clock)
    const handle: MemoryHandle<Answer> = { sluicegate: 1, memory, section, algorithm, secret: [this.#k0, this.#k1], clock }
    return shownAs(handle, 'LimiterHandle', { algorithm })
  }

  stats(): LimiterStats {
    this.opened.core.look()
    const { opened } = this
    return { ...opened.counters(), memoryBytes: opened.memory.buffer.byteLength - untouchedBytes(opened) }
  }

  hotKeys(n?: number): HotKeys {
    this.opened.core.look()
    return (this.lists ?? new TopLists(0)).top(n)
  }

  snapshot(): Uint8Array {
    this.opened.core.look()
    return snapshotOf({ secret: this.secret, sections: [this.section] })
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

  answer(booking: MemoryBooking<Answer>): Answer {
    return this.bookings.answer(booking) as Answer
  }

  giveBack(booking: MemoryBooking<Answer>, tokens: number): Decision {
    return this.bookings.giveBack(booking, tokens)
  }

  refuse(key: Key, cost: number): Answer {
    return refusal(this.peek(key, cost)) as Answer
  }

  bookedPolicy(): Policy | undefined {
    return isBookedAhead(this.decoder.policy) ? this.decoder.policy : undefined
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

  /** Its section of the memory and the algorithm there. */
  get section(): SnapshotSection {
    return { open: this.opened, algorithm: this.decoder.policy.algorithm }
  }

  /** Bytes of the whole memory, unused parts included. */
  get memoryBytes(): number {
    return this.opened.memory.buffer.byteLength
  }

  get secret(): readonly [number, number] {
    return [this.#k0, this.#k1]
  }

  /** The key's hash, in `low` and `high` of fingerprint.ts. */
  hash(key: string): void {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
  }

  /** Microseconds since the Unix epoch, for the core. */
  nowUs(): number {
    const { us } = this.ticker
    return Number.isNaN(us) ? this.ticker.read() : us
  }
}
