/** A key and how often it was counted, at the least. */
export interface KeyCount {
  readonly key: string
  readonly count: number
}

/**
 * The most frequent keys in fixed memory: constant time a key on average, whatever the keys are.
 *
 * A count is never too high, and too low by at most the additions divided by `capacity`.
 *
 * Source: Misra and Gries, "Finding repeated elements", Science of Computer Programming 2 (1982).
 */
export class FrequentKeys {
  readonly #capacity: number
  readonly #counts = new Map<string, number>()

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  add(key: string): void {
    const count = this.#counts.get(key)
    if (count !== undefined || this.#counts.size < this.#capacity) {
      this.#counts.set(key, (count ?? 0) + 1)
      return
    }
    // Each round takes away what as many additions brought.
    for (const [other, times] of this.#counts) {
      if (times === 1) this.#counts.delete(other)
      else this.#counts.set(other, times - 1)
    }
  }

  /** The `n` most frequent, the first one first. */
  top(n: number): KeyCount[] {
    const keys = Array.from(this.#counts, ([key, count]) => ({ key, count }))
    return keys.sort((a, b) => b.count - a.count).slice(0, n)
  }
}
