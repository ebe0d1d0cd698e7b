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

/** Values that one sweep ends: others have their turn after it. */
export const SWEPT_AT_ONCE = 500

interface Entry<Value> {
  readonly id: string
  readonly value: Value
  readonly ofKey: OfKey<Value>
  untilMs: number
  /** Where its id is. */
  second: number
  /** Of the same key: the one that was added before it, and the one after it. */
  before: Entry<Value> | undefined
  after: Entry<Value> | undefined
}

/** The values of a key. */
interface OfKey<Value> {
  readonly keyName: string
  count: number
  last: Entry<Value> | undefined
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
  readonly #byKey = new Map<string, OfKey<Value>>()
  /** Ids by the second in which their time may be over: one timer for all of them. */
  readonly #idsBySecond = new Map<number, Set<string>>()
  #sweptSecond = Number.NEGATIVE_INFINITY
  /** Seconds that are over, and whose ids are not all looked at. */
  readonly #due = new Set<number>()
  expired = 0

  constructor(bounds: HeldBounds, nowMs: () => number, onExpiry: (value: Value, id: string) => void) {
    this.#bounds = bounds
    this.#nowMs = nowMs
    this.#onExpiry = onExpiry
  }

  get size(): number {
    return this.#entries.size
  }

  /** Whether one more may be held, as far as it depends on all keys. */
  hasRoom(): boolean {
    const { max } = this.#bounds
    if (this.#entries.size >= max) this.sweep()
    return this.#entries.size < max
  }

  /** @throws {TooManyHeldError} when there is no room for one more of `keyName`. */
  requireRoom(keyName: string): void {
    this.sweep()
    const { what, max, maxPerKey } = this.#bounds
    if (!this.hasRoom()) throw new TooManyHeldError(`there are ${max} ${what} already`)
    const ofKey = this.#byKey.get(keyName)
    if (ofKey !== undefined && ofKey.count >= maxPerKey) this.#endOf(ofKey)
    if (ofKey !== undefined && ofKey.count >= maxPerKey) throw new TooManyHeldError(`this key has ${maxPerKey} ${what} already`)
  }

  /** Adds a value for `ttlMs`, and returns its id. {@link HeldById.requireRoom} comes before. */
  add(keyName: string, value: Value, ttlMs: number, id: string = this.#newId()): string {
    const untilMs = this.#nowMs() + ttlMs
    const ofKey = this.#byKey.get(keyName) ?? { keyName, count: 0, last: undefined }
    const entry: Entry<Value> = { id, value, ofKey, untilMs, second: 0, before: ofKey.last, after: undefined }
    this.#entries.set(id, entry)
    this.#byKey.set(keyName, ofKey)
    if (ofKey.last !== undefined) ofKey.last.after = entry
    ofKey.last = entry
    ofKey.count++
    this.#schedule(entry)
    return id
  }

  get(id: string): Value | undefined {
    const entry = this.#entries.get(id)
    if (entry === undefined) return undefined
    if (entry.untilMs > this.#nowMs()) return entry.value
    this.#expire(entry)
    return undefined
  }

  /** Removes the value, and returns it. */
  remove(id: string): Value | undefined {
    const value = this.get(id)
    if (value !== undefined) this.#forget(this.#entries.get(id) as Entry<Value>)
    return value
  }

  /** Keeps the value for `ttlMs` from now. False when it is not there any more. */
  renew(id: string, ttlMs: number): boolean {
    if (this.get(id) === undefined) return false
    const entry = this.#entries.get(id) as Entry<Value>
    this.#unschedule(entry)
    entry.untilMs = this.#nowMs() + ttlMs
    this.#schedule(entry)
    return true
  }

  /**
   * Ends values whose time is over, at most {@link SWEPT_AT_ONCE}. False: there are more. Cheap: at most once a second it looks which are due. Whoever
   * asks for a value that was not reached is told that its time is over.
   */
  sweep(): boolean {
    const nowMs = this.#nowMs()
    const second = Math.floor(nowMs / 1000)
    if (second > this.#sweptSecond) {
      this.#sweptSecond = second
      for (const due of this.#idsBySecond.keys()) if (due <= second) this.#due.add(due)
    }
    let left = SWEPT_AT_ONCE
    for (const due of this.#due) {
      for (const id of this.#idsBySecond.get(due) ?? []) {
        if (left-- === 0) return false
        const entry = this.#entries.get(id) as Entry<Value>
        this.#unschedule(entry)
        if (entry.untilMs <= nowMs) this.#expire(entry)
        // The clock has been set back.
        else this.#schedule(entry)
      }
      this.#due.delete(due)
    }
    return true
  }

  clear(): void {
    this.#entries.clear()
    this.#byKey.clear()
    this.#idsBySecond.clear()
    this.#due.clear()
  }

  #newId(): string {
    const { slot } = this.#bounds
    return slot === undefined ? randomUUID() : idOfSlot(randomUUID(), slot)
  }

  #schedule(entry: Entry<Value>): void {
    const second = Math.max(Math.ceil(entry.untilMs / 1000), this.#sweptSecond + 1)
    const ids = this.#idsBySecond.get(second) ?? new Set()
    this.#idsBySecond.set(second, ids.add(entry.id))
    entry.second = second
  }

  /** An id stays nowhere for longer than its value. */
  #unschedule({ id, second }: Entry<Value>): void {
    const ids = this.#idsBySecond.get(second)
    if (ids?.delete(id) && ids.size === 0) this.#idsBySecond.delete(second)
  }

  /** Ends those of a key whose time is over. */
  #endOf(ofKey: OfKey<Value>): void {
    const nowMs = this.#nowMs()
    for (let entry = ofKey.last; entry !== undefined; entry = entry.before) if (entry.untilMs <= nowMs) this.#expire(entry)
  }

  #expire(entry: Entry<Value>): void {
    this.#forget(entry)
    this.expired++
    this.#onExpiry(entry.value, entry.id)
  }

  #forget(entry: Entry<Value>): void {
    const { id, ofKey, before, after } = entry
    this.#entries.delete(id)
    this.#unschedule(entry)
    if (before !== undefined) before.after = after
    if (after !== undefined) after.before = before
    else ofKey.last = before
    if (--ofKey.count === 0) this.#byKey.delete(ofKey.keyName)
  }
}
