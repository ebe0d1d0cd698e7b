import { nameOf } from '../key.js'
import type { Key } from '../limiter.js'

/** A set of keys in insertion order that drops the oldest beyond a maximum. */
export class UsedKeys {
  private readonly most: number
  private readonly keys = new Map<string, Key>()
  /** Stays behind the last dropped key: a new iterator would walk over all deleted entries, which a map keeps for a while. */
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
    // It never reaches the end, where it would stay: all before it are gone, so a full map has one behind it.
    const next = this.oldest.next()
    if (next.done !== true) this.keys.delete(next.value)
  }
}
