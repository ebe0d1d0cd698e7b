import type { WaitRequest } from '../../arguments.js'
import { Chain, type Place } from '../../waiting/chain.js'
import { type Due, DueHeap } from '../../waiting/due-heap.js'

/** A waiter in a {@link WaitingQueue}. */
export interface QueueMember {
  /** Wakes it when it sleeps. */
  readonly own: symbol
  readonly request: WaitRequest
  /** Its place in the order of arrival. */
  readonly arrival: number
  /** The reading at which it gives up. */
  readonly untilMs: number
}

/** The last denial of the first in a queue: the reading from which on it would pass. */
export interface QueueDenial {
  readonly atMs: number
}

/** The waiters for a key in this process that hold no reservation, in the order of arrival. */
export class WaitingQueue {
  /** The sum of their costs, and when the last of them will have given up. */
  tokens = 0
  untilMs = Number.NEGATIVE_INFINITY
  denied: QueueDenial | undefined
  /** How often waiters lost their reservations, and come back to it. */
  returns = 0
  private readonly members = new Chain<QueueMember>()

  get first(): QueueMember | undefined {
    return this.members.first?.item
  }

  /** Behind all that arrived before it: a waiter that was first and has to request again is first again. */
  add(member: QueueMember): Place<QueueMember> {
    const { arrival, request, untilMs } = member
    this.tokens += request.cost
    this.untilMs = Math.max(this.untilMs, untilMs)
    const { first, last } = this.members
    if (first === undefined || last === undefined || last.item.arrival < arrival) return this.members.add(member)
    let before: Place<QueueMember> | undefined
    for (let next: Place<QueueMember> | undefined = first; next !== undefined && next.item.arrival < arrival; next = next.after)
      before = next
    return this.members.insert(member, before)
  }

  remove(place: Place<QueueMember>): void {
    if (this.first === place.item) this.denied = undefined
    this.tokens -= place.item.request.cost
    this.members.remove(place)
  }
}

/** Reservations on their way to the backend from waiters that are not in a queue, by key. */
export class PendingRequests {
  private readonly byName = new Map<string, { count: number; largest: number }>()

  has(name: string): boolean {
    return this.byName.has(name)
  }

  /**
   * Whether a request for `cost` cannot overtake those on their way: the backend answers in order, so where fewer tokens are denied, as many
   * or more are too.
   */
  mayFollow(name: string, cost: number): boolean {
    const { largest = 0 } = this.byName.get(name) ?? {}
    return cost >= largest
  }

  begin(name: string, cost: number): void {
    const underway = this.byName.get(name)
    if (underway === undefined) this.byName.set(name, { count: 1, largest: cost })
    else {
      underway.count++
      underway.largest = Math.max(underway.largest, cost)
    }
  }

  end(name: string): void {
    const underway = this.byName.get(name)
    if (underway !== undefined && --underway.count === 0) this.byName.delete(name)
  }
}

/** The times of the reservations of this process's waiters, by key. */
export class ReservedTimes {
  private readonly times = new Map<string, DueHeap<Due>>()

  /** The result removes it. */
  add(name: string, atMs: number): () => void {
    const heap = this.times.get(name) ?? new DueHeap<Due>()
    this.times.set(name, heap)
    // The latest first.
    const time: Due = { dueUs: -atMs, order: 0, place: -1 }
    heap.add(time)
    return () => {
      heap.remove(time)
      if (heap.first === undefined) this.times.delete(name)
    }
  }

  latestMs(name: string): number {
    const first = this.times.get(name)?.first
    return first === undefined ? Number.NEGATIVE_INFINITY : -first.dueUs
  }
}
