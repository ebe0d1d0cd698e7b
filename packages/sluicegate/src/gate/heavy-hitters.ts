import { type Counted, CountHeap } from '../decision/count-heap.js'

interface Counter extends Counted {
  readonly key: string
  readonly low: number
  readonly high: number
}

/**
 * The keys with the highest counts of a sketch, in fixed memory: filtered Space-Saving. A key takes the place of the least one only when the
 * sketch counts more for it, so that a flood of keys that come once displaces none.
 *
 * Sources: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005; N. Homem,
 * J. P. Carvalho, "Finding top-k elements in data streams", 2010.
 */
export class HeavyHitters {
  readonly #size: number
  readonly #counters = new Map<string, Counter>()
  readonly #heap = new CountHeap<Counter>()

  constructor(size: number) {
    this.#size = size
  }

  /** The count of a key, as the sketch has it after a record. */
  offer(key: string, low: number, high: number, count: number): void {
    const { least } = this.#heap
    const isFull = this.#heap.size >= this.#size
    if (isFull && (least === undefined || count <= least.count)) return
    const known = this.#counters.get(key)
    if (known !== undefined) {
      // A count falls when time goes on; the heap is put in order again by the next renewal.
      if (count > known.count) {
        known.count = count
        this.#heap.sink(known)
      }
      return
    }
    const counter: Counter = { key, low, high, count, at: 0 }
    this.#counters.set(key, counter)
    if (isFull) {
      this.#counters.delete((least as Counter).key)
      this.#heap.replaceLeast(counter)
    } else this.#heap.push(counter)
  }

  /** Counts all keys again, and forgets those without a count. */
  renew(countOf: (low: number, high: number) => number): void {
    this.#heap.renew((counter) => {
      counter.count = countOf(counter.low, counter.high)
      if (counter.count === 0) this.#counters.delete(counter.key)
      return counter.count > 0
    })
  }

  /** The `n` highest counts, highest first. */
  top(n: number): { readonly key: string; readonly count: number }[] {
    return this.#heap.top(n).map(({ key, count }) => ({ key, count }))
  }
}
