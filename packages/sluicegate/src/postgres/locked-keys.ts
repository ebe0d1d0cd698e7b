/** A key that was locked is taken for locked for this long. */
const LOCKED_MS = 1000
const MOST_KEYS = 1000

/** Keys that other sessions kept locked of late: statements do not wait for them again. */
export class LockedKeys {
  readonly #untilMs = new Map<string, number>()

  isLocked(key: string): boolean {
    if (this.#untilMs.size === 0) return false
    const untilMs = this.#untilMs.get(key)
    if (untilMs === undefined || untilMs > performance.now()) return untilMs !== undefined
    this.#untilMs.delete(key)
    return false
  }

  note(key: string): void {
    if (this.#untilMs.size >= MOST_KEYS) this.#untilMs.clear()
    this.#untilMs.set(key, performance.now() + LOCKED_MS)
  }

  forget(key: string): void {
    this.#untilMs.delete(key)
  }
}
