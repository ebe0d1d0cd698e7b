import type { Decision } from '../decision/decision.js'
import { nameOf } from '../key.js'
import type { Key } from '../limiter.js'
import type { Alarm, Alert } from './alarm.js'
import type { BoundedBookings } from './booking-limits.js'
import { Chain, type Place } from './chain.js'
import type { Booking, BookingService } from './reserving.js'
import type { Waiter } from './waiter.js'

/** What {@link BookedWaiters} is made of. */
export interface BookedWaitersParts<Answer extends Decision> {
  readonly service: BookingService<Answer>
  readonly bookings: BoundedBookings<Answer>
  readonly alarm: Alarm
  /** Called when a booking of a key was given back. */
  readonly onGivenBack: (key: Key) => void
}

/** Waiters with a booking, until its time. */
export class BookedWaiters<Answer extends Decision> {
  private readonly parts: BookedWaitersParts<Answer>
  /** The runs of each key, in the order of arrival. */
  private readonly queues = new Map<string, Chain<Run<Answer>>>()

  constructor(parts: BookedWaitersParts<Answer>) {
    this.parts = parts
  }

  /**
   * The time of the latest waiter that a new caller with this booking would overtake: tokens that come back in front of booked waiters may be booked
   * again. Undefined if it overtakes none, or may: with the same cost it gives them its time, and its own deadline is sooner than theirs.
   */
  overtakenUs(waiter: Waiter<Answer>, booking: Booking<Answer>): number | undefined {
    const last = this.queues.get(nameOf(booking.key))?.last?.item
    if (last === undefined || last.latestUs <= booking.atUs || last.latestUs > waiter.deadlineUs) return undefined
    return last.takesIn(waiter, booking) ? undefined : last.latestUs
  }

  /** Answers the waiter when its time has come: at once, or by the alarm. */
  add(waiter: Waiter<Answer>, booking: Booking<Answer>): void {
    const name = nameOf(booking.key)
    const queue = this.queues.get(name)
    const last = queue?.last
    if (last?.item.takesIn(waiter, booking)) last.item.add(waiter, booking)
    else if (booking.atUs <= booking.bookedUs) waiter.resolve(booking.decision, booking)
    else this.newRun(name, queue ?? this.newQueue(name), booking.cost).add(waiter, booking)
  }

  /** Rejects all waiters and gives back their bookings, the latest first: only the latest may come back in full. */
  close(reason: unknown): void {
    for (const queue of [...this.queues.values()]) {
      for (const run of [...queue].reverse()) run.close(reason)
    }
  }

  private newQueue(name: string): Chain<Run<Answer>> {
    const queue = new Chain<Run<Answer>>()
    this.queues.set(name, queue)
    return queue
  }

  private newRun(name: string, queue: Chain<Run<Answer>>, cost: number): Run<Answer> {
    const onEmpty = (): void => {
      queue.remove(place)
      if (queue.first === undefined) this.queues.delete(name)
    }
    const run = new Run<Answer>(this.parts, cost, onEmpty)
    const place = queue.add(run)
    return run
  }
}

/**
 * Consecutive waiters of one key and one cost. They share their bookings: the first waiter gets the soonest booking. When a waiter gives up,
 * those behind it move up, and the latest booking goes back, which returns the most.
 */
class Run<Answer extends Decision> implements Alert {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  private readonly waiters = new Chain<Waiter<Answer>>()
  /** As many as waiters, soonest first. */
  private readonly bookings = new Chain<Booking<Answer>>()
  private readonly parts: BookedWaitersParts<Answer>
  private readonly cost: number
  private readonly onEmpty: () => void
  private isGone = false

  constructor(parts: BookedWaitersParts<Answer>, cost: number, onEmpty: () => void) {
    this.parts = parts
    this.cost = cost
    this.onEmpty = onEmpty
  }

  /** Not when the new caller's booking is sooner, as after a refund, and it would not wait for the latest that is then its own. */
  takesIn(waiter: Waiter<Answer>, { cost, atUs }: Booking<Answer>): boolean {
    const latestUs = this.bookings.last?.item.atUs ?? atUs
    return cost === this.cost && (latestUs <= atUs || latestUs <= waiter.deadlineUs)
  }

  get latestUs(): number {
    return this.bookings.last?.item.atUs ?? Number.NEGATIVE_INFINITY
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
  }

  private answer(booking: Booking<Answer>): void {
    const place = this.waiters.first as Place<Waiter<Answer>>
    const waiter = place.item
    this.waiters.remove(place)
    waiter.called()
    try {
      const { service } = this.parts
      const answer = service.answer(booking)
      if (!answer.allowed) service.giveBack(booking, this.cost)
      waiter.resolve(answer, answer.allowed ? booking : undefined)
    } catch (error) {
      waiter.reject(error)
    }
  }

  private giveUp(place: Place<Waiter<Answer>>): void {
    const latest = this.bookings.last as Place<Booking<Answer>>
    this.waiters.remove(place)
    this.bookings.remove(latest)
    this.setAlert()
    try {
      this.parts.bookings.giveUp(latest.item, this.cost)
      this.parts.onGivenBack(latest.item.key)
    } catch {
      // The store failed: the booking stays charged and expires. The caller receives the reason of its own abort.
    }
  }

  private setAlert(): void {
    const { alarm } = this.parts
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
