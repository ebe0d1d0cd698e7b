import type { Decision } from '../decision/decision.js'
import { nameOf, partsOf } from '../key.js'
import type { Key } from '../limiter.js'
import { type Alert, alertOf } from './alarm.js'
import type { BookedWaiters } from './booked-waiters.js'
import type { BoundedBookings } from './booking-limits.js'
import { Chain } from './chain.js'
import type { CountOf } from './release-watch.js'
import type { Booking } from './reserving.js'
import type { Waiter } from './waiter.js'

/**
 * Waiters without a booking, because their key cannot be booked ahead, or not that far. One queue per key; its first waiter asks again
 * after a release and at the time that its last denial named.
 */
export class TurnQueues<Answer extends Decision> {
  private readonly booked: BookedWaiters<Answer>
  private readonly bookings: BoundedBookings<Answer>
  private readonly countOf: CountOf | undefined
  private readonly onSize: (size: number) => void
  private readonly queues = new Map<string, Queue<Answer>>()
  /** The queues that may gain when a single key of theirs is released. */
  private readonly byPart = new Map<string, Set<Queue<Answer>>>()
  private size = 0

  /** @param onSize receives the number of queued waiters. */
  constructor(booked: BookedWaiters<Answer>, countOf: CountOf | undefined, onSize: (size: number) => void) {
    this.booked = booked
    this.bookings = booked.bookings
    this.countOf = countOf
    this.onSize = onSize
  }

  has(key: Key): boolean {
    return this.queues.has(nameOf(key))
  }

  /** Whether a new waiter at the end of the queue cannot be served before its deadline. */
  isTooLate(key: Key, cost: number, deadlineUs: number): boolean {
    const queue = this.queues.get(nameOf(key))
    if (queue?.denied === undefined || queue.denied.maybeSooner || deadlineUs === Number.POSITIVE_INFINITY) return false
    return this.bookings.allPassedUs(queue.denied, queue.tokens + cost) > deadlineUs
  }

  /** Queues a waiter that would overtake others whose last is answered at `overtakenUs`: it asks then. */
  addBehind(waiter: Waiter<Answer>, overtakenUs: number): void {
    this.add(waiter)
    const queue = this.queues.get(nameOf(waiter.request.key))
    if (queue?.waiters.first?.item === waiter) this.bookings.alarm.set(queue, overtakenUs, waiter.order)
  }

  /** Queues a waiter that had a booking: before all that arrived later. */
  addAgain(waiter: Waiter<Answer>, denied: Booking<Answer> | undefined): void {
    this.add(waiter, denied)
    const queue = this.queues.get(nameOf(waiter.request.key))
    if (queue?.waiters.first?.item === waiter && denied === undefined) queue.soon()
  }

  /** Queues a waiter; the first of a queue with the booking that it was denied. */
  add(waiter: Waiter<Answer>, denied?: Booking<Answer>): void {
    const { key, cost } = waiter.request
    const queue = this.queues.get(nameOf(key)) ?? this.newQueue(key)
    queue.tokens += cost
    let isQueued = true
    let before = queue.waiters.last
    while (before !== undefined && before.item.order > waiter.order) before = before.before
    const place = queue.waiters.insert(waiter, before)
    const isFirst = before === undefined
    const { alarm, service } = this.bookings
    const deadline = alertOf(() => {
      if (queue.waiters.first === place) this.ask(queue)
      if (isQueued) waiter.deny(service)
    })
    if (waiter.deadlineUs < Number.POSITIVE_INFINITY) alarm.set(deadline, waiter.deadlineUs, waiter.order)
    waiter.stay(() => {
      const wasFirst = queue.waiters.first === place
      isQueued = false
      queue.waiters.remove(place)
      queue.tokens -= cost
      if (wasFirst) queue.denied = undefined
      alarm.clear(deadline)
      this.resize(-1)
      if (queue.waiters.first === undefined) this.drop(queue)
      else if (wasFirst) queue.soon()
    })
    if (isFirst && denied !== undefined) this.askLater(queue, denied, waiter.order)
    // Last: a watch that starts here lets all queues ask once.
    this.resize(1)
  }

  /** A release of `key`: all queues that may profit from it ask again, the longest waiting first. */
  released(key: Key): void {
    const gaining = new Set<Queue<Answer>>()
    for (const part of partsOf(key)) for (const queue of this.byPart.get(part) ?? []) gaining.add(queue)
    askAll(gaining)
  }

  /** A booking of `key` was given back: the first waiter asks after all bookings of this turn are back. */
  gaveBack(key: Key): void {
    this.queues.get(nameOf(key))?.soon()
  }

  /** A release in any thread: all queues that may profit from it and have not asked since ask again. */
  releasedAny(): void {
    const gaining: Queue<Answer>[] = []
    for (const queue of this.queues.values()) if (queue.mayGain()) gaining.push(queue)
    askAll(gaining)
  }

  close(reason: unknown): void {
    for (const queue of [...this.queues.values()]) for (const waiter of queue.waiters) waiter.reject(reason)
  }

  private newQueue(key: Key): Queue<Answer> {
    const queue = new Queue<Answer>(key, (queue) => this.ask(queue), this.countOf?.(key))
    this.queues.set(nameOf(key), queue)
    for (const part of partsOf(key)) {
      const others = this.byPart.get(part)
      if (others === undefined) this.byPart.set(part, new Set([queue]))
      else others.add(queue)
    }
    return queue
  }

  private drop(queue: Queue<Answer>): void {
    this.bookings.alarm.clear(queue)
    this.queues.delete(nameOf(queue.key))
    for (const part of partsOf(queue.key)) {
      const others = this.byPart.get(part)
      others?.delete(queue)
      if (others?.size === 0) this.byPart.delete(part)
    }
  }

  private resize(by: number): void {
    this.size += by
    this.onSize(this.size)
  }

  private askLater(queue: Queue<Answer>, denied: Booking<Answer>, order: number): void {
    queue.denied = denied
    this.bookings.alarm.set(queue, this.bookings.askAgainUs(denied), order)
  }

  /** Lets one waiter after another ask, until one has to wait longer. */
  private ask(queue: Queue<Answer>): void {
    const { booked, bookings } = this
    const { service, alarm } = bookings
    queue.isAsking = true
    for (let { first } = queue.waiters; first !== undefined; { first } = queue.waiters) {
      const waiter = first.item
      const { key, cost } = waiter.request
      queue.look()
      try {
        const booking = bookings.book(key, cost, alarm.leftMs(waiter.deadlineUs))
        if (queue.waiters.first !== first) {
          // A subscriber ended or answered this wait during the call.
          if (booking.allowed) service.giveBack(booking, cost)
        } else if (booking.allowed) {
          const overtakenUs = booked.overtakenUs(waiter, booking)
          if (overtakenUs !== undefined) {
            service.giveBack(booking, cost)
            alarm.set(queue, overtakenUs, waiter.order)
            break
          }
          waiter.leave()
          booked.add(waiter, booking)
        } else if (waiter.isDeniedBy(booking)) {
          waiter.resolve(booking.decision)
        } else {
          this.askLater(queue, booking, waiter.order)
          break
        }
      } catch (error) {
        waiter.reject(error)
      }
    }
    queue.isAsking = false
  }
}

/** The waiters of one key, in order of arrival. */
class Queue<Answer extends Decision> implements Alert {
  dueUs = Number.POSITIVE_INFINITY
  order = 0
  place = -1
  readonly key: Key
  readonly waiters = new Chain<Waiter<Answer>>()
  /** The tokens of all waiters. */
  tokens = 0
  /** The last denial of the first waiter. */
  denied: Booking<Answer> | undefined
  private readonly ask: (queue: Queue<Answer>) => void
  isAsking = false
  private isSoon = false
  private readonly countNow: (() => number) | undefined
  /** The release count at the last attempt. */
  private seen: number | undefined

  constructor(key: Key, ask: (queue: Queue<Answer>) => void, countNow: (() => number) | undefined) {
    this.key = key
    this.ask = ask
    this.countNow = countNow
  }

  /** To be called before it asks: what was released by now is there by then. */
  look(): void {
    this.seen = this.countNow?.()
  }

  mayGain(): boolean {
    return this.seen === undefined || this.seen !== this.countNow?.()
  }

  ring(): void {
    this.ask(this)
  }

  /** Asks in a microtask: when a thousand waiters leave together, only the first remaining one asks. */
  soon(): void {
    if (this.isSoon || this.isAsking) return
    this.isSoon = true
    queueMicrotask(() => {
      this.isSoon = false
      this.ask(this)
    })
  }
}

function askAll<Answer extends Decision>(queues: Iterable<Queue<Answer>>): void {
  const orderOf = ({ waiters }: Queue<Answer>): number => waiters.first?.item.order ?? 0
  for (const queue of [...queues].sort((a, b) => orderOf(a) - orderOf(b))) queue.ring()
}
