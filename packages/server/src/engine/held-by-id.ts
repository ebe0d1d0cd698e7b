import { randomUUID } from 'node:crypto'
import { idOfSlot } from './shared-limiter.js'

/** No room: too many reservations or permits, in all or of one key. */
export class TooManyHeldError extends Error {
  override readonly name = 'TooManyHeldError'
}

/** What may be held at once. */
export interface HeldBounds {
  /** For messages: `reservations`. */
  readonly what: string
  readonly max: number
  readonly maxPerKey: number
  /** Of this process among those of the service; see peers.ts. */
  readonly slot?: number | undefined
}

interface Entry<Value> {
  readonly value: Value
  readonly keyName: string
  untilMs: number
  /** Where its id is. */
  second: number
}

/**
 * Values that clients name by an id until they end or their time is over: in bounded number, in all and for one key. Ids are random, so that a client
 * can use only its own.
 */
export class HeldById<Value> {
  readonly #bounds: HeldBounds
  readonly #nowMs: () => number
  readonly #onExpiry: (value: Value, id: string) => void
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #countByKey = new Map<string, number>()
  /** Ids by the second in which their time may be over: one timer for all of them. */
  readonly #idsBySecond = new Map<number, Set<string>>()
  #sweptSecond = Number.NEGATIVE_INFINITY
  expired = 0

  constructor(bounds: HeldBounds, nowMs: () => number, onExpiry: (value: Value, id: string) => void) {
    this.#bounds = bounds
    this.#nowMs = nowMs
    this.#onExpiry = onExpiry
  }

  get size(): number {
    return this.#entries.size
  }

  /** @throws {TooManyHeldError} when there is no room for one more of `keyName`. */
  requireRoom(keyName: string): void {
    this.sweep()
    const { what, max, maxPerKey } = this.#bounds
    if (this.#entries.size >= max) throw new TooManyHeldError(`there are ${max} ${what} already`)
    if ((this.#countByKey.get(keyName) ?? 0) >= maxPerKey) throw new TooManyHeldError(`this key has ${maxPerKey} ${what} already`)
  }

  /** Adds a value for `ttlMs`, and returns its id. {@link HeldById.requireRoom} comes before. */
  add(keyName: string, value: Value, ttlMs: number, id: string = this.#newId()): string {
    const untilMs = this.#nowMs() + ttlMs
    const entry = { value, keyName, untilMs, second: 0 }
    this.#entries.set(id, entry)
    this.#countByKey.set(keyName, (this.#countByKey.get(keyName) ?? 0) + 1)
    this.#schedule(id, entry)
    return id
  }

  get(id: string): Value | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    if (entry.untilMs > this.#nowMs()) return entry.value
    this.#expire(id, entry)
    return undefined
  }

  /** Removes the value, and returns it. */
  remove(id: string): Value | undefined {
    const value = this.get(id)
    if (value !== undefined) this.#forget(id)
    return value
  }

  /** Keeps the value for `ttlMs` from now. False when it is not there any more. */
  renew(id: string, ttlMs: number): boolean {
    if (this.get(id) === undefined) return false
    const entry = this.#entries.get(id) as Entry<Value>
    this.#unschedule(id, entry)
    entry.untilMs = this.#nowMs() + ttlMs
    this.#schedule(id, entry)
    return true
  }

  /** Ends values whose time is over. Cheap: at most once a second it looks at those that are due. */
  sweep(): void {
    const nowMs = this.#nowMs()
    const second = Math.floor(nowMs / 1000)
    if (second <= this.#sweptSecond) return
    this.#sweptSecond = second
    for (const [due, ids] of this.#idsBySecond) {
      if (due > second) continue
      this.#idsBySecond.delete(due)
      for (const id of ids) {
        const entry = this.#entries.get(id)
        if (entry === undefined) continue
        if (entry.untilMs <= nowMs) this.#expire(id, entry)
        // It is due later in this second.
        else this.#schedule(id, entry)
      }
    }
  }

  clear(): void {
    this.#entries.clear()
    this.#countByKey.clear()
    this.#idsBySecond.clear()
  }

  #newId(): string {
    const { slot } = this.#bounds
    return slot === undefined ? randomUUID() : idOfSlot(randomUUID(), slot)
  }

  #schedule(id: string, entry: Entry<Value>): void {
    const second = Math.max(Math.ceil(entry.untilMs / 1000), this.#sweptSecond + 1)
    const ids = this.#idsBySecond.get(second) ?? new Set()
    this.#idsBySecond.set(second, ids.add(id))
    entry.second = second
  }

  /** An id stays nowhere for longer than its value. */
  #unschedule(id: string, { second }: Entry<Value>): void {
    const ids = this.#idsBySecond.get(second)
    if (ids?.delete(id) && ids.size === 0) this.#idsBySecond.delete(second)
  }

  #expire(id: string, { value }: Entry<Value>): void {
    this.#forget(id)
    this.expired++
    this.#onExpiry(value, id)
  }

  #forget(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    this.#entries.delete(id)
    this.#unschedule(id, entry)
    const count = (this.#countByKey.get(entry.keyName) ?? 1) - 1
    if (count > 0) this.#countByKey.set(entry.keyName, count)
    else this.#countByKey.delete(entry.keyName)
  }
}
