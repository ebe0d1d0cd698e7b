import { checkedWaitRequest } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import { closedError } from '../errors.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Clock } from '../time/clock.js'
import { AbortWatch } from './abort-watch.js'
import { Alarm } from './alarm.js'
import { BookedWaiters } from './booked-waiters.js'
import { BoundedBookings } from './booking-limits.js'
import { type CountOf, ReleaseWatch, type ReleaseWords } from './release-watch.js'
import type { Booking, BookingService } from './reserving.js'
import { TurnQueues } from './turn-queues.js'
import { Waiter } from './waiter.js'

/** What {@link Waiting} is made of. */
export interface WaitingParts<Answer extends Decision> {
  readonly service: BookingService<Answer>
  /** The limiter's. */
  readonly clock: Clock
  /** How many callers may wait at once. */
  readonly maxWaiting: number
  /** Releases, also of other threads. */
  readonly releases?: {
    countOf: CountOf
    /** Where releases are counted, in the limiter's memory. */
    words(): readonly ReleaseWords[]
  }
}

/**
 * The waiters of one thread, in order of arrival for each key.
 *
 * A waiter books as soon as its tokens are near enough ({@link BoundedBookings}): they are charged in the shared state for the time at which
 * they will be available. No thread can overtake it then, and it only sleeps until that time. Before that, it waits in the queue of its
 * key, and so do all waiters for what cannot be booked ahead, above all permits. The first of a queue asks again.
 *
 * One timer serves all waiters: it is set for the soonest, and unset without waiters. It keeps the process alive, as any pending
 * sleep does.
 */
export class Waiting<Answer extends Decision> {
  /** The number of waiters without a booking. While it is 0, a take overtakes none. */
  queued = 0
  private readonly service: BookingService<Answer>
  private readonly maxWaiting: number
  private readonly alarm: Alarm
  private readonly bookings: BoundedBookings<Answer>
  private readonly booked: BookedWaiters<Answer>
  private readonly turns: TurnQueues<Answer>
  private readonly aborts = new AbortWatch()
  private readonly releases: WaitingParts<Answer>['releases']
  /** Made for the first queued waiter, dropped on close: they reference the limiter's memory. */
  private watches: readonly ReleaseWatch[] | undefined
  private bookedKeys = 0
  private waiters = 0
  private arrivals = 0
  private isClosed = false

  constructor({ service, clock, maxWaiting, releases }: WaitingParts<Answer>) {
    this.service = service
    this.maxWaiting = maxWaiting
    this.alarm = new Alarm(clock, (error) => this.rejectAll(error))
    this.bookings = new BoundedBookings(service, this.alarm)
    const countOf = releases?.countOf
    this.booked = new BookedWaiters(this.bookings, countOf, {
      onGivenBack: (key) => this.turns.gaveBack(key),
      onDenied: (waiter, denied) => this.turns.addAgain(waiter, denied),
      onSize: (keys) => {
        this.bookedKeys = keys
        this.watch()
      },
    })
    this.turns = new TurnQueues(this.booked, countOf, (size) => {
      this.queued = size
      this.watch()
    })
    this.releases = releases
  }

  /** How many wait. */
  get size(): number {
    return this.waiters
  }

  /** {@link Limiter.wait}. Misuse rejects too. */
  wait(key: Key, options?: WaitOptions): Promise<Answer> {
    return this.waited(key, options, (answer) => answer)
  }

  /** {@link wait}, whose result is made of the answer and of what was charged, if anything was. */
  waited<Result>(
    key: Key,
    options: WaitOptions = {},
    resultOf: (answer: Answer, booking: Booking<Answer> | undefined) => Result,
  ): Promise<Result> {
    return new Promise((settle, reject) => {
      const resolve = (answer: Answer, booking?: Booking<Answer>): void => settle(resultOf(answer, booking))
      const request = checkedWaitRequest(key, options)
      if (this.isClosed) throw closedError()
      if (request.signal?.aborted) return reject(request.signal.reason)
      const place = { order: this.arrivals++, deadlineUs: this.alarm.inUs(request.maxWaitMs) }
      const waiter = new Waiter<Answer>(request, place, { resolve, reject })
      this.enter(waiter)
      if (!waiter.isOver) this.count(waiter)
    })
  }

  /** Whether a take of `key` would overtake a waiter. */
  isQueued(key: Key): boolean {
    return this.queued > 0 && this.turns.has(key)
  }

  /** To be called when this thread released something that counts for `key`; without a key, for any. */
  released(key?: Key): void {
    if (key === undefined) this.releasedAny()
    else {
      this.booked.released(key)
      this.turns.released(key)
    }
  }

  /** Makes a change that returns tokens of `key`, and that its booked waiters would hinder: they book anew after it. */
  aside<Result>(key: Key, change: () => Result): Result {
    if (this.waiters === 0) return change()
    const bookAgain = this.booked.aside(key)
    try {
      return change()
    } finally {
      bookAgain()
      this.turns.gaveBack(key)
    }
  }

  /**
   * Tokens of `key` come back that were charged for this moment, under a policy that is closed until the time of its latest booking: the first
   * waiters go with them, in order, and their bookings come back. Returns the tokens that are left.
   */
  gift(key: Key, tokens: number): number {
    if (this.bookedKeys === 0) return tokens
    const left = this.booked.gift(key, tokens)
    if (left < tokens) this.turns.gaveBack(key)
    return left
  }

  /** Takes all bookings back, before a change of what they count by; the result makes them anew. */
  lift(): () => void {
    return this.booked.lift()
  }

  /** Rejects all waiters and gives back their bookings. Call it while the service still works. */
  close(): void {
    this.isClosed = true
    this.rejectAll(closedError())
    for (const watch of this.watches ?? []) watch.close()
    this.watches = undefined
  }

  private rejectAll(reason: unknown): void {
    this.booked.close(reason)
    this.turns.close(reason)
  }

  private releasedAny(): void {
    this.booked.releasedAny()
    this.turns.releasedAny()
  }

  private watch(): void {
    const isWanted = this.queued + this.bookedKeys > 0
    if (isWanted) this.watches ??= this.releases?.words().map((words) => new ReleaseWatch(words, () => this.releasedAny()))
    for (const watch of this.watches ?? []) watch.want(isWanted)
  }

  private enter(waiter: Waiter<Answer>): void {
    const { key, cost, maxWaitMs } = waiter.request
    const isFull = this.waiters >= this.maxWaiting
    if (this.turns.has(key)) {
      const refusal = this.service.refuse(key, cost)
      const isNever = isFull || maxWaitMs === 0 || refusal.retryAfterMs === Number.POSITIVE_INFINITY
      const isFinal = isNever || this.turns.isTooLate(key, cost, waiter.deadlineUs)
      if (isFinal) waiter.resolve(refusal)
      else this.turns.add(waiter)
      return
    }
    const booking = this.bookings.book(key, cost, isFull ? 0 : maxWaitMs)
    const overtakenUs = booking.allowed && !isFull ? this.booked.overtakenUs(waiter, booking) : undefined
    if (overtakenUs !== undefined) {
      this.service.giveBack(booking, cost)
      this.turns.addBehind(waiter, overtakenUs)
    } else if (booking.allowed) this.booked.add(waiter, booking)
    else if (isFull || waiter.isDeniedBy(booking)) waiter.resolve(booking.decision)
    else this.turns.add(waiter, booking)
  }

  private count(waiter: Waiter<Answer>): void {
    const { signal } = waiter.request
    const abort = (): void => waiter.reject(signal?.reason)
    const unwatch = signal === undefined ? undefined : this.aborts.add(signal, abort)
    this.waiters++
    waiter.onEnd = () => {
      this.waiters--
      unwatch?.()
    }
    // A subscriber may have aborted or closed during the booking.
    if (signal?.aborted) abort()
    else if (this.isClosed) waiter.reject(closedError())
  }
}
