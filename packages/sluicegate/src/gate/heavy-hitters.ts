interface Counter {
  readonly key: string
  readonly low: number
  readonly high: number
  count: number
  /** Its place in the heap. */
  at: number
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
  /** A binary heap, the smallest count first. */
  #heap: Counter[] = []

  constructor(size: number) {
    this.#size = size
  }

  /** The count of a key, as the sketch has it after a record. */
  offer(key: string, low: number, high: number, count: number): void {
    const least = this.#heap[0]
    const isFull = this.#heap.length >= this.#size
    if (isFull && (least === undefined || count <= least.count)) return
    const known = this.#counters.get(key)
    if (known !== undefined) {
      // A count falls when time goes on; the heap is put in order again by the next renewal.
      if (count > known.count) {
        known.count = count
        this.#sink(known)
      }
      return
    }
    const counter: Counter = { key, low, high, count, at: 0 }
    this.#counters.set(key, counter)
    if (isFull) {
      this.#counters.delete((least as Counter).key)
      this.#heap[0] = counter
      this.#sink(counter)
    } else {
      counter.at = this.#heap.length
      this.#heap.push(counter)
      this.#rise(counter)
    }
  }

  /** Counts all keys again, and forgets those without a count. */
  renew(countOf: (low: number, high: number) => number): void {
    for (const counter of this.#heap) {
      counter.count = countOf(counter.low, counter.high)
      if (counter.count === 0) this.#counters.delete(counter.key)
    }
    this.#heap = this.#heap.filter(({ count }) => count > 0).sort((a, b) => a.count - b.count)
    for (let i = 0; i < this.#heap.length; i++) (this.#heap[i] as Counter).at = i
  }

  /** The `n` highest counts, highest first. */
  top(n: number): { readonly key: string; readonly count: number }[] {
    return [...this.#heap]
      .sort((a, b) => b.count - a.count)
      .slice(0, n)
      .map(({ key, count }) => ({ key, count }))
  }

  #sink(counter: Counter): void {
    for (;;) {
      const left = this.#heap[2 * counter.at + 1]
      const right = this.#heap[2 * counter.at + 2]
      const smaller = right !== undefined && left !== undefined && right.count < left.count ? right : left
      if (smaller === undefined || smaller.count >= counter.count) return
      this.#trade(counter, smaller)
    }
  }

  #rise(counter: Counter): void {
    for (;;) {
      const parent = this.#heap[(counter.at - 1) >> 1]
      if (parent === undefined || parent.count <= counter.count) return
      this.#trade(counter, parent)
    }
  }

  #trade(a: Counter, b: Counter): void {
    const at = a.at
    a.at = b.at
    b.at = at
    this.#heap[a.at] = a
    this.#heap[b.at] = b
  }
}
