import { nameOf } from '../key-name.js'
import type { Key } from '../limiter.js'

/** Keys, each once, in the order in which they came; beyond a number the oldest make room. */
export class UsedKeys {
  private readonly most: number
  private readonly keys = new Map<string, Key>()
  /** Stands behind the last one that made room. To begin anew for each would walk over all that went before, which a map still has. */
  private readonly oldest = this.keys.keys()

  /** @param most at least 1. */
  constructor(most: number) {
    this.most = most
  }

  get size(): number {
    return this.keys.size
  }

  add(key: Key): void {
    const name = nameOf(key)
    if (this.keys.has(name)) return
    if (this.keys.size >= this.most) this.makeRoom()
    this.keys.set(name, key)
  }

  delete(key: Key): void {
    this.keys.delete(nameOf(key))
  }

  clear(): void {
    this.keys.clear()
  }

  [Symbol.iterator](): Iterator<Key> {
    return this.keys.values()
  }

  private makeRoom(): void {
    // It never comes to an end, where it would stay: all before it are gone, so that of a full map there is one behind it.
    const next = this.oldest.next()
    if (next.done !== true) this.keys.delete(next.value)
  }
}
