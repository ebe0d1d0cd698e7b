import { DueHeap } from '../waiting/due-heap.js'
import type { WaitingRequest } from './waiting-request.js'

/** Those who wait for one key. */
export class WaitingList {
  private readonly heap = new DueHeap<WaitingRequest>()
  private readonly all = new Set<WaitingRequest>()
  /** Of them those that do not wait. */
  private readonly hasty = new Set<WaitingRequest>()
  /** Nobody waits for longer. */
  private latestMs = Number.NEGATIVE_INFINITY

  get size(): number {
    return this.all.size
  }

  get first(): WaitingRequest | undefined {
    return this.heap.first
  }

  add(waiting: WaitingRequest): void {
    this.all.add(waiting)
    this.heap.add(waiting)
    if (waiting.isHasty) this.hasty.add(waiting)
    this.latestMs = Math.max(this.latestMs, waiting.deadlineMs)
  }

  remove(waiting: WaitingRequest): void {
    this.all.delete(waiting)
    this.hasty.delete(waiting)
    this.heap.remove(waiting)
    if (this.all.size === 0) this.latestMs = Number.NEGATIVE_INFINITY
  }

  /** How long anybody waits from now on; 0 where nobody is there who could wait. */
  patienceMs(nowMs: number): number {
    return this.hasty.size === this.all.size ? 0 : Math.max(0, this.latestMs - nowMs)
  }

  rejectAll(reason: (waiting: WaitingRequest) => unknown): void {
    reject(this.all, reason)
  }

  rejectHasty(reason: (waiting: WaitingRequest) => unknown): void {
    reject(this.hasty, reason)
  }

  /** Those who do not wait as long as that. */
  rejectBefore(ms: number, reason: (waiting: WaitingRequest) => unknown): void {
    for (const waiting of [...this.all]) if (waiting.deadlineMs < ms) waiting.reject(reason(waiting))
  }
}

/** Who is rejected leaves the list. */
function reject(waiters: Iterable<WaitingRequest>, reason: (waiting: WaitingRequest) => unknown): void {
  for (const waiting of [...waiters]) waiting.reject(reason(waiting))
}
