import type { Decision } from '../decision.js'
import { nameOf } from '../key.js'
import type { Key } from '../limiter.js'
import type { Alarm, Alert } from './alarm.js'
import type { Booking, BookingService } from './booking.js'
import type { BoundedBookings } from './bounded-bookings.js'
import { Chain, type Place } from './chain.js'
import type { Waiter } from './waiter.js'

/** What booked waiters need: who answers them, where their bookings go back, and the alarm that calls them up. */
export interface BookedWaitersParts<Answer extends Decision> {
  readonly service: BookingService<Answer>
  readonly bookings: BoundedBookings<Answer>
  readonly alarm: Alarm
  /** Called when a booking of a key was given back. */
  readonly onGivenBack: (key: Key) => void
}

/** Those who wait for the time that they are booked for. */
export class BookedWaiters<Answer extends Decision> {
  private readonly parts: BookedWaitersParts<Answer>
  /** The runs of each key, in the order of arrival. */
  private readonly lines = new Map<string, Chain<Run<Answer>>>()

  constructor(parts: BookedWaitersParts<Answer>) {
    this.parts = parts
  }

  /**
   * When those are answered whom a newcomer with this booking would overtake, as what comes back in front of them may be booked anew; nothing
   * when there are none, or when it may: with the same cost it lends them its time, and it cannot wait as long as they.
   */
  overtakenUs(waiter: Waiter<Answer>, booking: Booking<Answer>): number | undefined {
    const last = this.lines.get(nameOf(booking.key))?.last?.item
    if (last === undefined || last.latestUs <= booking.atUs || last.latestUs > waiter.deadlineUs) return undefined
    return last.takesIn(waiter, booking) ? undefined : last.latestUs
  }

  /** Answers the waiter when its time has come: at once, or by the alarm. */
  add(waiter: Waiter<Answer>, booking: Booking<Answer>): void {
    const name = nameOf(booking.key)
    const line = this.lines.get(name)
    const last = line?.last
    if (last?.item.takesIn(waiter, booking)) last.item.add(waiter, booking)
    else if (booking.atUs <= booking.bookedUs) waiter.resolve(booking.decision)
    else this.newRun(name, line ?? this.newLine(name), booking.cost).add(waiter, booking)
  }

  /** Rejects all, and gives back what they hold, the latest booking first: nothing but the latest may come back in full. */
  close(reason: unknown): void {
    for (const line of [...this.lines.values()]) {
      for (const run of [...line].reverse()) run.close(reason)
    }
  }

  private newLine(name: string): Chain<Run<Answer>> {
    const line = new Chain<Run<Answer>>()
    this.lines.set(name, line)
    return line
  }

  private newRun(name: string, line: Chain<Run<Answer>>, cost: number): Run<Answer> {
    const onEmpty = (): void => {
      line.remove(place)
      if (line.first === undefined) this.lines.delete(name)
    }
    const run = new Run<Answer>(this.parts, cost, onEmpty)
    const place = line.add(run)
    return run
  }
}

/**
 * Waiters of one key and one cost who came one after another. What they booked is theirs together: the first of them gets the soonest
 * booking. So when one gives up, those behind it move up, and what goes back is the latest booking, of which most comes back.
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

  /** Not when the newcomer's booking is sooner, as after a refund, and it would not wait for the latest that is then its own. */
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
      waiter.resolve(answer)
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
      // The store could not: it stays charged, and wears off. The caller hears of its own abort.
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
