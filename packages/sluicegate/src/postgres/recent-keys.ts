/** What was seen of a key counts for this long. */
const RECENT_MS = 1000
const MOST_KEYS = 1000

/** Keys of which something was seen of late, and is likely to be so still. */
export class RecentKeys {
  readonly #untilMs = new Map<string, number>()

  has(key: string): boolean {
    if (this.#untilMs.size === 0) return false
    const untilMs = this.#untilMs.get(key)
    if (untilMs === undefined || untilMs > performance.now()) return untilMs !== undefined
    this.#untilMs.delete(key)
    return false
  }

  note(key: string): void {
    if (this.#untilMs.size >= MOST_KEYS) this.#untilMs.clear()
    this.#untilMs.set(key, performance.now() + RECENT_MS)
  }

  forget(key: string): void {
    this.#untilMs.delete(key)
  }
}
