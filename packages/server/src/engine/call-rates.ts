import { type CallRate, type Clock, createRateTable, type LimiterStats, type RateTable, StoreError, type Throttled } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { Counts } from './served-policy.js'

/** Room for the keys of {@link CallRates}. Undefined: the library's defaults. */
export interface CallRateRoom {
  readonly maxKeys?: number | undefined
  readonly growTo?: number | undefined
}

const NO_KEYS: LimiterStats = { keys: 0, evictions: 0, refusals: 0, overflows: 0, casRetries: 0, contentions: 0, memoryBytes: 0 }

/** Decisions whose rate comes with the call instead of from a policy, as in redis-cell, made and counted for all protocols. */
export class CallRates {
  readonly counts: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  readonly #room: CallRateRoom
  readonly #clock: Clock | undefined
  /** Made by the first call: most services have none. */
  #table: RateTable | undefined

  constructor(clock?: Clock, room: CallRateRoom = {}) {
    this.#clock = clock
    this.#room = room
  }

  /**
   * Takes `quantity` tokens of `key` if the rate allows it; 0 tokens change nothing. See `RateTable` of the library.
   *
   * @throws {PolicyError} for a key, rate or quantity out of range: the caller's mistake, counted nowhere.
   * @throws {StoreError} when no decision could be made: an outage, counted as such.
   */
  throttle(key: string, rate: CallRate, quantity: number): Awaitable<Throttled> {
    try {
      const answer = this.#open().throttle(key, rate, quantity)
      if (quantity === 0) this.counts.peeks++
      else if (!answer.limited) this.counts.allowed++
      else if (quantity > answer.limit) this.counts.impossible++
      else this.counts.denied++
      return answer
    } catch (error) {
      if (error instanceof StoreError) this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
      throw error
    }
  }

  stats(): LimiterStats {
    return this.#table?.stats() ?? NO_KEYS
  }

  close(): void {
    this.#table?.close()
  }

  #open(): RateTable {
    const { maxKeys, growTo } = this.#room
    this.#table ??= createRateTable({
      ...(this.#clock && { clock: this.#clock }),
      ...(maxKeys !== undefined && { maxKeys }),
      ...(growTo !== undefined && { growTo }),
    })
    return this.#table
  }
}
