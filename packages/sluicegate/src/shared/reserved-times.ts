import { type Due, DueHeap } from '../waiting/due-heap.js'

/** The times for which those who wait in this process have booked, by key. */
export class ReservedTimes {
  private readonly times = new Map<string, DueHeap<Due>>()

  /** Answers with what takes it out again. */
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
