import { blockUs, checkedTokens, checkKey } from '../arguments.js'
import { type Clock, clockHandle } from '../clock.js'
import { refusal } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import { denials, publishDenial } from '../diagnostics.js'
import { type HotKeys, TopLists } from '../hot-keys.js'
import type { BoundKey, Key, Limiter, LimiterHandle, LimiterStats, WaitOptions } from '../limiter.js'
import { checkChange, checkedPolicy } from '../policy/checked-policy.js'
import type { Duration } from '../policy/duration.js'
import type { Algorithm, Policy } from '../policy/policy.js'
import { closeQueueOf } from '../queue/create-queue.js'
import type { Reservation } from '../reservation.js'
import { shownAs } from '../shown.js'
import type { BookingService } from '../waiting/booking.js'
import { isBookedAhead } from '../waiting/bounded-bookings.js'
import { releaseCount } from '../waiting/release-watch.js'
import { reserve, reserveBehind } from '../waiting/reserving.js'
import { Waiting } from '../waiting/waiting.js'
import { fingerprint, high, low } from './fingerprint.js'
import { type MemoryBooking, MemoryBookings } from './memory-bookings.js'
import { MemoryBoundKey } from './memory-bound-key.js'
import type { MemoryLimiterParts } from './memory-decisions.js'
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

/** The limiter in shared memory: hashes keys, reads the clock, and turns the core's debts into decisions. */
export class MemoryLimiter<Answer extends Decision = Decision> extends MemoryBookings implements Limiter<Answer>, BookingService<Answer> {
  private readonly clock: Clock
  readonly #k0: number
  readonly #k1: number
  /** Undefined when nobody asked for them. */
  private readonly lists: TopLists | undefined
  protected readonly waiting: Waiting<Answer>
  /** Called when this thread gave something back that others may wait for. */
  onRelease: (key: string) => void = (key) => this.waiting.released(key)

  /** Founds the memory with `policy`, or joins one that another thread founded. */
  constructor(parts: MemoryLimiterParts, policy?: Policy) {
    super(parts, policy)
    this.clock = parts.clock
    ;[this.#k0, this.#k1] = parts.secret
    if (parts.hotKeys > 0) this.lists = new TopLists(parts.hotKeys)
    this.waiting = new Waiting<Answer>({
      service: this,
      clock: parts.clock,
      maxWaiters: parts.maxWaiters,
      releases: { countOf: (key) => this.countOf(key as string), words: () => [this.releases()] },
    })
  }

  get policy(): Policy {
    this.opened.core.look()
    return this.decoder.policy
  }

  /** {@link policy} as it was when this limiter last decided. */
  policyOf(): Policy {
    return this.decoder.policy
  }

  take(key: Key, cost = 1): Answer {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
    return this.takeBound(key, low, high, cost)
  }

  peek(key: Key, cost = 1): Decision {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
    return this.peekHashed(key, low, high, cost)
  }

  wait(key: Key, options?: WaitOptions): Promise<Answer> {
    const answer = this.waiting.wait(key, options)
    if (this.lists === undefined && !denials.hasSubscribers) return answer
    return answer.then((decision) => this.told(key, options?.cost ?? 1, decision))
  }

  reserve(key: Key, cost: number): Reservation {
    const reservation = this.waiting.isQueued(key) ? reserveBehind(this, key, cost) : reserve(this, key, cost)
    if (this.lists !== undefined || denials.hasSubscribers) this.told(key, cost, { ...reservation.decision, allowed: reservation.allowed })
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

  update(policy: Policy): void {
    this.changeTo(policy)()
  }

  /** {@link update} in two steps: what can go wrong before anything has changed, and then the change, when it is called. */
  changeTo(policy: Policy): () => void {
    const next = checkedPolicy(policy)
    checkChange(this.policy, next)
    this.opened.core.prepare()
    const change = new PolicyChange(this.opened, next)
    return () => {
      // Read last, and anew: what other threads take under the old policy after this reading counts as taken before it.
      change.publish(this.ticker.read())
      if (this.waiting.queued > 0) this.waiting.released()
    }
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

  /** {@link take} for a key whose fingerprint is known. */
  takeBound(key: string, low: number, high: number, cost: number): Answer {
    if (this.waiting.isQueued(key)) return this.told(key, cost, this.refuse(key, cost))
    const decision = this.takeHashed(key, low, high, cost)
    if (this.lists !== undefined) this.lists.count(key, decision.allowed)
    return decision as Answer
  }

  // What waiting and reserving ask for.

  book(key: Key, cost: number, mostMs: number): MemoryBooking<Answer> {
    checkKey(key)
    fingerprint(key, this.#k0, this.#k1)
    const booking = this.bookHashed(key, low, high, cost, Math.min(mostMs * 1000, Number.MAX_SAFE_INTEGER))
    return booking as MemoryBooking<Answer>
  }

  answer(booking: MemoryBooking<Answer>): Answer {
    return this.answerHashed(booking) as Answer
  }

  giveBack(booking: MemoryBooking<Answer>, tokens: number): Decision {
    return this.giveBackHashed(booking, tokens)
  }

  refuse(key: Key, cost: number): Answer {
    return refusal(this.peek(key, cost)) as Answer
  }

  bookedPolicy(): Policy | undefined {
    return isBookedAhead(this.decoder.policy) ? this.decoder.policy : undefined
  }

  /** A count that moves whenever something comes back that `key` may gain by, in any thread. */
  countOf(key: string): () => number {
    this.hash(key)
    return releaseCount(this.releases(), high)
  }

  /** Its part of the memory, with the algorithm that is at work there. */
  get section(): SnapshotSection {
    return { open: this.opened, algorithm: this.decoder.policy.algorithm }
  }

  /** Size of the whole memory, with what nobody has come to yet. */
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

  /** A change after which those who stand in line for the key ask again: something may have come back. */
  private released(key: Key, verb: (nowUs: number) => number): Decision {
    const decision = this.change(key, verb)
    if (this.waiting.queued > 0) this.onRelease(key as string)
    return decision
  }

  /** Counts what came of a request, and tells of a denial. */
  private told<Told extends Decision>(key: Key, cost: number, decision: Told): Told {
    this.lists?.count(key, decision.allowed)
    publishDenial(key, cost, decision)
    return decision
  }

  private change(key: Key, verb: (nowUs: number) => number): Decision {
    checkKey(key)
    const nowUs = this.nowUs()
    fingerprint(key, this.#k0, this.#k1)
    this.answered(verb(nowUs), key)
    const decision = this.peekHashed(key, low, high, 1, nowUs)
    this.publishEvents()
    return decision
  }
}
