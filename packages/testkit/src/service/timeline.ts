/** Events in the order of their times; those of one time in the order in which they were added. */
export class Timeline {
  readonly #events: { readonly at: number; readonly act: () => void }[] = []
  now = 0

  add(at: number, act: () => void): void {
    const events = this.#events
    let low = 0
    let high = events.length
    // Latest first, so that the next is the last.
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((events[middle] as { at: number }).at > at) low = middle + 1
      else high = middle
    }
    events.splice(low, 0, { at, act })
  }

  /** Runs all events before `end`; `pass` is called with each time at which there are some, before them. */
  runUntil(end: number, pass: () => void = () => {}): void {
    for (;;) {
      const next = this.#events.at(-1)
      if (next === undefined || next.at >= end) return
      this.#events.pop()
      this.now = Math.max(this.now, next.at)
      pass()
      next.act()
    }
  }
}
