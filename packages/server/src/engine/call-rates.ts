import { type CallRate, type Clock, type LimiterStats, StoreError, type Throttled } from 'sluicegate'
import { type Awaitable, whenDone } from './awaitable.js'
import type { Counts } from './served-policy.js'
import type { CallRateRoom, Storage, StoredRateTable } from './stored-limiter.js'

const NO_KEYS: LimiterStats = { keys: 0, evictions: 0, refusals: 0, overflows: 0, casRetries: 0, contentions: 0, memoryBytes: 0 }

/** Decisions whose rate comes with the call instead of from a policy, as in redis-cell, made and counted for all protocols. */
export class CallRates {
  readonly counts: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  readonly room: CallRateRoom
  readonly #open: () => StoredRateTable
  readonly #restore: (saved: Uint8Array) => StoredRateTable
  /** Made by the first call: most services have none. */
  #table: StoredRateTable | undefined

  constructor(storage: Storage, room: CallRateRoom = {}, clock?: Clock) {
    this.room = room
    this.#open = () => storage.rateTable(room, clock)
    this.#restore = (saved) => storage.rateTable(room, clock, saved)
  }

  /**
   * Takes `quantity` tokens of `key` if the rate allows it; 0 tokens change nothing. See `RateTable` of the library.
   *
   * Throws, or rejects with:
   * - `PolicyError` for a key, rate or quantity out of range: the caller's mistake, counted nowhere.
   * - `StoreError` when no decision could be made: an outage, counted as such.
   */
  throttle(key: string, rate: CallRate, quantity: number): Awaitable<Throttled> {
    try {
      this.#table ??= this.#open()
      const answer = this.#table.throttle(key, rate, quantity)
      if (!(answer instanceof Promise)) return this.#counted(answer, quantity)
      return whenDone(answer, (made) => this.#counted(made, quantity)) as Promise<Throttled>
    } catch (error) {
      if (error instanceof StoreError) this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
      throw error
    }
  }

  /**
   * Begins with the keys of a snapshot, before the first call.
   *
   * @throws {PolicyError} `SNAPSHOT_INVALID`; the keys start full then.
   */
  restore(saved: Uint8Array): void {
    this.#table = this.#restore(saved)
  }

  /** All keys as bytes; undefined where a store keeps them, and before the first call. */
  snapshot(): Uint8Array | undefined {
    return this.#table?.snapshot()
  }

  stats(): LimiterStats {
    return this.#table?.stats() ?? NO_KEYS
  }

  close(): void {
    this.#table?.close()
  }

  #counted(answer: Throttled, quantity: number): Throttled {
    if (quantity === 0) this.counts.peeks++
    else if (!answer.limited) this.counts.allowed++
    else if (quantity > answer.limit) this.counts.impossible++
    else this.counts.denied++
    return answer
  }
}
