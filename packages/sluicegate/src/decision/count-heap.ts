/** What a {@link CountHeap} holds. */
export interface Counted {
  count: number
  /** Its place in the heap. */
  at: number
}

/** A binary heap of counters, the smallest count first. */
export class CountHeap<Counter extends Counted> {
  private counters: Counter[] = []

  get size(): number {
    return this.counters.length
  }

  get least(): Counter | undefined {
    return this.counters[0]
  }

  push(counter: Counter): void {
    counter.at = this.counters.length
    this.counters.push(counter)
    this.rise(counter)
  }

  /** Puts a counter in the place of the least one. */
  replaceLeast(counter: Counter): void {
    counter.at = 0
    this.counters[0] = counter
    this.sink(counter)
  }

  /** After the count of a counter has grown. */
  sink(counter: Counter): void {
    for (;;) {
      const left = this.counters[2 * counter.at + 1]
      const right = this.counters[2 * counter.at + 2]
      const smaller = right !== undefined && left !== undefined && right.count < left.count ? right : left
      if (smaller === undefined || smaller.count >= counter.count) return
      this.trade(counter, smaller)
    }
  }

  /** Keeps the counters for which `keeps`, which may change counts, answers true. */
  renew(keeps: (counter: Counter) => boolean): void {
    this.counters = this.counters.filter(keeps).sort((a, b) => a.count - b.count)
    for (const [at, counter] of this.counters.entries()) counter.at = at
  }

  /** The `n` highest counts, highest first. */
  top(n: number): Counter[] {
    return [...this.counters].sort((a, b) => b.count - a.count).slice(0, n)
  }

  private rise(counter: Counter): void {
    for (;;) {
      const parent = this.counters[(counter.at - 1) >> 1]
      if (parent === undefined || parent.count <= counter.count) return
      this.trade(counter, parent)
    }
  }

  private trade(a: Counter, b: Counter): void {
    const at = a.at
    a.at = b.at
    b.at = at
    this.counters[a.at] = a
    this.counters[b.at] = b
  }
}
