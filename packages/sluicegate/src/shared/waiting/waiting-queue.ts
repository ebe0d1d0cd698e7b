import type { WaitRequest } from '../../arguments.js'
import type { Decision } from '../../decision/decision.js'
import { Chain, type Place } from '../../waiting/chain.js'
import { type Due, DueHeap } from '../../waiting/due-heap.js'
import type { Reserved } from '../backend.js'

/** One caller of `wait`. */
export interface Wait {
  readonly request: WaitRequest
  /** Its place in the order of arrival. */
  readonly arrival: number
  /** The reading at which it gives up. */
  readonly untilMs: number
  /** Whatever the backend says of when it would pass. */
  readonly asksOn: boolean
}

/** How it ended: its answer, and what was charged at the backend for it. */
export interface Waited {
  readonly decision: Decision
  readonly reserved?: Reserved | undefined
}

/** The waiters for a key in this process that hold no reservation, in the order of arrival. */
export class WaitingQueue {
  /** The sum of their costs, and when the last of them will have given up. */
  tokens = 0
  untilMs = Number.NEGATIVE_INFINITY
  /** The reading from which on the first would pass, by its last denial. */
  deniedUntilMs: number | undefined
  /** How often waiters lost their reservations, and come back to it. */
  returns = 0
  private readonly members = new Chain<Wait>()

  get first(): Wait | undefined {
    return this.members.first?.item
  }

  [Symbol.iterator](): Iterator<Wait> {
    return this.members[Symbol.iterator]()
  }

  /** Whether one that arrived before `arrival` waits in it, or comes back to it since it had had so many `returns`. */
  isBehind(arrival: number, returns = this.returns): boolean {
    return this.returns !== returns || (this.first !== undefined && this.first.arrival < arrival)
  }

  /** Behind all that arrived before it: a waiter that was first and has to request again is first again. */
  add(wait: Wait): Place<Wait> {
    const { arrival, request, untilMs } = wait
    this.tokens += request.cost
    this.untilMs = Math.max(this.untilMs, untilMs)
    const { first, last } = this.members
    if (first === undefined || last === undefined || last.item.arrival < arrival) return this.members.add(wait)
    let before: Place<Wait> | undefined
    for (let next: Place<Wait> | undefined = first; next !== undefined && next.item.arrival < arrival; next = next.after) before = next
    return this.members.insert(wait, before)
  }

  remove(place: Place<Wait>): void {
    if (this.first === place.item) this.deniedUntilMs = undefined
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
