/** Exact counts of numbered keys in a sliding window: each record is kept until it leaves the window. */
export class ExactWindow {
  readonly counts: Uint32Array
  readonly #windowMs: number
  readonly #keys: Uint32Array
  readonly #times: Float64Array
  #first = 0
  #next = 0

  /** @param most records that the window may hold at once. */
  constructor(keys: number, windowMs: number, most: number) {
    this.counts = new Uint32Array(keys)
    this.#windowMs = windowMs
    this.#keys = new Uint32Array(most)
    this.#times = new Float64Array(most)
  }

  get total(): number {
    return this.#next - this.#first
  }

  /** The count of the key in the window that ends now. */
  add(key: number, timeMs: number): number {
    this.advance(timeMs)
    const at = this.#next++ % this.#keys.length
    if (this.total > this.#keys.length) throw new Error('the window holds more records than it has room for')
    this.#keys[at] = key
    this.#times[at] = timeMs
    const count = (this.counts[key] as number) + 1
    this.counts[key] = count
    return count
  }

  advance(timeMs: number): void {
    while (this.#first < this.#next) {
      const at = this.#first % this.#keys.length
      if ((this.#times[at] as number) > timeMs - this.#windowMs) return
      const key = this.#keys[at] as number
      this.counts[key] = (this.counts[key] as number) - 1
      this.#first++
    }
  }
}
