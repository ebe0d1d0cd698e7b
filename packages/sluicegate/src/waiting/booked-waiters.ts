import type { Decision } from '../decision/decision.js'
import { StoreError } from '../errors.js'
import { nameOf } from '../key.js'
import type { Key } from '../limiter.js'
import type { Alert } from './alarm.js'
import type { BoundedBookings } from './booking-limits.js'
import { Chain, type Place } from './chain.js'
import type { CountOf } from './release-watch.js'
import type { Booking } from './reserving.js'
import type { Waiter } from './waiter.js'

/** Waiters of one key that book anew in one go; after more, the key rests before the next go. */
const MOST_AT_ONCE = 256
/** For each of them. */
const REST_US = 20

/** What {@link BookedWaiters} tell. */
export interface BookedEvents<Answer extends Decision> {
  /** A booking of a key was given back. */
  readonly onGivenBack: (key: Key) => void
  /** Takes in a waiter whose booking was taken back and cannot be made anew now: before all that came after it. */
  readonly onDenied: (waiter: Waiter<Answer>, denied: Booking<Answer> | undefined) => void
  /** Receives the number of keys with booked waiters. */
  readonly onSize: (keys: number) => void
}

/** Waiters with a booking, until its time. */
export class BookedWaiters<Answer extends Decision> {
  readonly bookings: BoundedBookings<Answer>
  readonly events: BookedEvents<Answer>
  private readonly countOf: CountOf | undefined
  private readonly queues = new Map<string, BookedQueue<Answer>>()

  constructor(bookings: BoundedBookings<Answer>, countOf: CountOf | undefined, events: BookedEvents<Answer>) {
    this.bookings = bookings
    this.countOf = countOf
    this.events = events
  }

  /**
   * The time of the latest waiter that a new caller with this booking would overtake: tokens that come back in front of booked waiters may be booked
   * again. Undefined if it overtakes none, or may: with the same cost it gives them its time, and its own deadline is sooner than theirs.
   */
  overtakenUs(waiter: Waiter<Answer>, booking: Booking<Answer>): number | undefined {
    const last = this.queues.get(nameOf(booking.key))?.last
    if (last === undefined || last.latestUs <= booking.atUs || last.latestUs > waiter.deadlineUs) return undefined
    return last.takesIn(waiter, booking) ? undefined : last.latestUs
  }

  /** Answers the waiter when its time has come: at once, or by the alarm. */
  add(waiter: Waiter<Answer>, booking: Booking<Answer>): void {
    const name = nameOf(booking.key)
    const queue = this.queues.get(name)
    if (queue?.last?.takesIn(waiter, booking)) queue.last.add(waiter, booking)
    else if (booking.atUs <= booking.bookedUs) waiter.resolve(booking.decision, booking)
    else (queue ?? this.newQueue(name, booking.key)).newRun(booking.cost).add(waiter, booking)
  }

  /** Something of `key` came back: its waiters book anew, the first first, where that may be sooner. */
  released(key: Key): void {
    this.queues.get(nameOf(key))?.bookAgain()
  }

  /** Takes the bookings of `key` back, unless they are many; the result makes them anew. */
  aside(key: Key): () => void {
    const queue = this.queues.get(nameOf(key))
    if (!queue?.isShort) return () => undefined
    const waiters = queue.lifted()
    return () => queue.return(waiters)
  }

  /** {@link Waiting.gift} */
  gift(key: Key, tokens: number): number {
    return this.queues.get(nameOf(key))?.gift(tokens) ?? tokens
  }

  /** A release in any thread. */
  releasedAny(): void {
    for (const queue of [...this.queues.values()]) if (queue.mayGain()) queue.bookAgain()
  }

  /** Takes all bookings back, before a change of what they count by; the result makes them anew. */
  lift(): () => void {
    const lifted: { readonly queue: BookedQueue<Answer>; readonly waiters: readonly Waiter<Answer>[] }[] = []
    const bookAgain = (): void => {
      for (const { queue, waiters } of lifted) queue.return(waiters)
    }
    try {
      for (const queue of [...this.queues.values()]) lifted.push({ queue, waiters: queue.lifted() })
    } catch (error) {
      bookAgain()
      throw error
    }
    return bookAgain
  }

  /** Rejects all waiters and gives back their bookings, the latest first: only the latest may come back in full. */
  close(reason: unknown): void {
    for (const queue of [...this.queues.values()]) queue.close(reason)
  }

  private newQueue(name: string, key: Key): BookedQueue<Answer> {
    const queue = new BookedQueue<Answer>(this, this.countOf?.(key), () => {
      this.queues.delete(name)
      this.events.onSize(this.queues.size)
    })
    this.queues.set(name, queue)
    this.events.onSize(this.queues.size)
    return queue
  }
}

/** The runs of one key, in the order of arrival. */
class BookedQueue<Answer extends Decision> implements Alert {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  readonly host: BookedWaiters<Answer>
  private readonly onEmpty: () => void
  private readonly runs = new Chain<Run<Answer>>()
  private readonly countNow: (() => number) | undefined
  private seen: number | undefined
  private isSoon = false
  private isLifting = false
  private restUntilUs = 0

  constructor(host: BookedWaiters<Answer>, countNow: (() => number) | undefined, onEmpty: () => void) {
    this.host = host
    this.onEmpty = onEmpty
    this.countNow = countNow
    this.seen = this.countNow?.()
  }

  get last(): Run<Answer> | undefined {
    return this.runs.last?.item
  }

  get isShort(): boolean {
    let waiters = 0
    for (const { size } of this.runs) waiters += size
    return waiters <= MOST_AT_ONCE && !this.isLifting
  }

  newRun(cost: number): Run<Answer> {
    const run = new Run<Answer>(this, cost, () => {
      this.runs.remove(place)
      this.tell()
    })
    const place = this.runs.add(run)
    return run
  }

  mayGain(): boolean {
    return this.seen === undefined || this.seen !== this.countNow?.()
  }

  ring(): void {
    this.bookAgain()
  }

  /** When thousands of waiters leave together, those behind them book anew once. */
  soon(): void {
    if (this.isSoon || this.isLifting) return
    this.isSoon = true
    queueMicrotask(() => {
      this.isSoon = false
      this.bookAgain()
    })
  }

  /** Takes bookings back, the latest first, and makes them anew in the order of arrival. */
  bookAgain(): void {
    const { alarm } = this.host.bookings
    if (this.isLifting || this.place >= 0) return
    try {
      this.seen = this.countNow?.()
      if (!this.mayBeSooner()) return
      const nowUs = alarm.nowUs()
      if (nowUs < this.restUntilUs) {
        alarm.set(this, this.restUntilUs, 0)
        return
      }
      const waiters = this.lifted()
      if (waiters.length > MOST_AT_ONCE) this.restUntilUs = nowUs + waiters.length * REST_US
      this.return(waiters)
    } catch (error) {
      // The limiter is closed or busy: waiters keep their times. With anything else, such as a clock that fails, all waits end.
      if (!(error instanceof StoreError)) alarm.fail(error)
    }
  }

  /** Takes the bookings of all that wait back, as far as that is possible, and returns the waiters. When it fails they book anew at once. */
  lifted(): readonly Waiter<Answer>[] {
    if (this.host.bookings.service.unbook === undefined) return []
    this.isLifting = true
    const waiters: Waiter<Answer>[] = []
    try {
      for (let { last } = this.runs; last !== undefined; { last } = this.runs) {
        // Of another thread a later booking stands: what was booked before it stays.
        if (!last.item.lift(waiters)) break
      }
    } catch (error) {
      this.return(waiters.reverse())
      throw error
    } finally {
      this.isLifting = false
    }
    return waiters.reverse()
  }

  /** {@link Waiting.gift} */
  gift(tokens: number): number {
    let left = tokens
    // Runs whose waiters have all gone keep their bookings until the turn's end.
    for (const run of this.runs) {
      while (run.size > 0) {
        if (run.cost > left || this.isLifting || !run.goesWithGift()) return left
        left -= run.cost
      }
    }
    return left
  }

  /** Takes in waiters whose bookings were taken back. */
  return(waiters: readonly Waiter<Answer>[]): void {
    const { bookings, events } = this.host
    const { service, alarm } = bookings
    let isDenied = false
    this.isLifting = true
    for (const waiter of waiters) {
      if (waiter.isOver) continue
      const { key, cost } = waiter.request
      try {
        if (isDenied) {
          events.onDenied(waiter, undefined)
          continue
        }
        const booking = bookings.bookAgain(key, cost, alarm.leftMs(waiter.deadlineUs))
        if (waiter.isOver) {
          // A subscriber ended this wait during the call.
          if (booking.allowed) service.giveBack(booking, cost)
        } else if (booking.allowed) this.host.add(waiter, booking)
        else if (waiter.isDeniedBy(booking)) waiter.resolve(booking.decision)
        else {
          isDenied = true
          events.onDenied(waiter, booking)
        }
      } catch (error) {
        waiter.reject(error)
      }
    }
    this.isLifting = false
    this.seen = this.countNow?.()
    this.tell()
  }

  close(reason: unknown): void {
    for (const run of [...this.runs].reverse()) run.close(reason)
  }

  private mayBeSooner(): boolean {
    const latest = this.last?.latest
    if (latest === undefined) return false
    for (const run of this.runs) if (run.abandoned > 0) return true
    return this.host.bookings.service.isLate?.(latest) ?? false
  }

  private tell(): void {
    if (this.runs.first !== undefined || this.isLifting) return
    this.host.bookings.alarm.clear(this)
    this.onEmpty()
  }
}

/**
 * Consecutive waiters of one key and one cost. They share their bookings: the first waiter gets the soonest booking. When a waiter gives up,
 * those behind it move up, and the latest booking goes back, which returns the most: at once from the last run of its key, else after those
 * of the runs behind it.
 */
class Run<Answer extends Decision> implements Alert {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  /** Bookings whose waiters have given up: the latest. */
  abandoned = 0
  private readonly waiters = new Chain<Waiter<Answer>>()
  /** As many as waiters and abandoned ones, soonest first. */
  private readonly bookings = new Chain<Booking<Answer>>()
  readonly cost: number
  private readonly queue: BookedQueue<Answer>
  private readonly onEmpty: () => void
  private isGone = false

  constructor(queue: BookedQueue<Answer>, cost: number, onEmpty: () => void) {
    this.queue = queue
    this.cost = cost
    this.onEmpty = onEmpty
  }

  /** Not when the new caller's booking is sooner, as after a refund, and it would not wait for the latest that is then its own. */
  takesIn(waiter: Waiter<Answer>, { cost, atUs }: Booking<Answer>): boolean {
    const latestUs = this.bookings.last?.item.atUs ?? atUs
    return cost === this.cost && (latestUs <= atUs || latestUs <= waiter.deadlineUs)
  }

  get size(): number {
    return this.waiters.size
  }

  get latest(): Booking<Answer> | undefined {
    return this.bookings.last?.item
  }

  get latestUs(): number {
    return this.latest?.atUs ?? Number.NEGATIVE_INFINITY
  }

  private get bounded(): BoundedBookings<Answer> {
    return this.queue.host.bookings
  }

  private get isLast(): boolean {
    return this.queue.last === this
  }

  add(waiter: Waiter<Answer>, booking: Booking<Answer>): void {
    const place = this.waiters.add(waiter)
    waiter.stay(() => this.giveUp(place))
    let before = this.bookings.last
    while (before !== undefined && before.item.atUs > booking.atUs) before = before.before
    this.bookings.insert(booking, before)
    this.ring(booking.bookedUs)
  }

  ring(nowUs: number): void {
    for (let { first } = this.bookings; first !== undefined && first.item.atUs <= nowUs; { first } = this.bookings) {
      this.bookings.remove(first)
      this.answer(first.item)
    }
    this.setAlert()
  }

  close(reason: unknown): void {
    for (const waiter of this.waiters) waiter.reject(reason)
    while (this.abandoned > 0) this.giveBackLatest()
    this.setAlert()
  }

  /** Takes the bookings back, the latest first, and adds their waiters, the last first. False: some could not be. */
  lift(into: Waiter<Answer>[]): boolean {
    const { service } = this.bounded
    let isDone = true
    for (let { last } = this.bookings; isDone && last !== undefined; { last } = this.bookings) {
      if (this.abandoned > 0) {
        this.giveBackLatest()
        continue
      }
      isDone = service.unbook?.(last.item) ?? false
      if (isDone) {
        const place = this.waiters.last as Place<Waiter<Answer>>
        this.waiters.remove(place)
        this.bookings.remove(last)
        place.item.called()
        into.push(place.item)
      }
    }
    this.setAlert()
    return isDone
  }

  private answer(booking: Booking<Answer>): void {
    const { service } = this.bounded
    const { first } = this.waiters
    if (first === undefined) {
      this.abandoned--
      service.giveBack(booking, this.cost)
      return
    }
    const waiter = first.item
    this.waiters.remove(first)
    waiter.called()
    try {
      const answer = service.redeem(booking)
      if (!answer.allowed) service.giveBack(booking, this.cost)
      waiter.resolve(answer, answer.allowed ? booking : undefined)
    } catch (error) {
      waiter.reject(error)
    }
  }

  /** The first waiter goes now, for tokens that it is not charged for: those behind it move up. Not while the key is banned. */
  goesWithGift(): boolean {
    const { service } = this.bounded
    const [booking, place] = [this.bookings.first?.item, this.waiters.first]
    if (booking === undefined || place === undefined) return false
    const answer = service.redeem(booking)
    if (!answer.allowed) return false
    this.waiters.remove(place)
    place.item.called()
    this.abandoned++
    this.freed(this.isLast, (latest) => service.giveBack(latest, this.cost))
    place.item.resolve(answer)
    this.setAlert()
    return true
  }

  private giveUp(place: Place<Waiter<Answer>>): void {
    this.waiters.remove(place)
    this.abandoned++
    this.freed(this.isLast || this.bounded.service.unbook === undefined)
    this.setAlert()
  }

  /** A booking is without a waiter: the latest goes back at once, or those behind may have its time. */
  private freed(atOnce: boolean, giveBack?: (latest: Booking<Answer>) => unknown): void {
    if (atOnce) this.giveBackLatest(giveBack)
    else this.queue.soon()
  }

  private giveBackLatest(giveBack = (latest: Booking<Answer>): unknown => this.bounded.giveUp(latest, this.cost)): void {
    const latest = this.bookings.last as Place<Booking<Answer>>
    this.abandoned--
    this.bookings.remove(latest)
    try {
      giveBack(latest.item)
      this.queue.host.events.onGivenBack(latest.item.key)
    } catch {
      // The store failed: the booking stays charged and expires. The caller receives the reason of its own abort.
    }
  }

  private setAlert(): void {
    const { alarm } = this.bounded
    const { first } = this.bookings
    if (first === undefined) {
      alarm.clear(this)
      if (!this.isGone) this.onEmpty()
      this.isGone = true
    } else if (first.item.atUs !== this.dueUs || this.place < 0) {
      alarm.set(this, first.item.atUs, this.waiters.first?.item.order ?? 0)
    }
  }
}
