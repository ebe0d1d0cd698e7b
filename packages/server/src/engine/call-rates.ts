import { isUtf8 } from 'node:buffer'
import { type Decision, type HotKey, type HotKeys, type LimiterStats, StoreError } from 'sluicegate'
import type { CallRate, Throttled } from 'sluicegate/rate-table'
import type { Awaitable } from './awaitable.js'
import { type CallRateRoom, type EngineRateTable, type LimiterMaking, NO_TABLE, type Storage } from './engine-limiter.js'
import type { DecisionObserver, Latency, Outcome } from './outcome.js'
import type { Counts } from './served-policy.js'

/**
 * Two readings of the clock take longer than such a decision in memory: after the first calls one in some is timed, and stands for those up to the
 * next one. At a store all are.
 */
const TIMED_FIRST = 64
const TIMED_EACH = 16

/** Who follows decisions. */
export interface CallWatch {
  readonly latency: Latency
  readonly observer: DecisionObserver | undefined
}

/** Decisions whose rate comes with the call instead of from a policy, as in redis-cell, made and counted for all protocols. */
export class CallRates {
  readonly counts: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  readonly room: CallRateRoom
  readonly #latency: Latency
  readonly #observer: DecisionObserver | undefined
  readonly #open: () => EngineRateTable
  readonly #restore: (saved: Uint8Array) => EngineRateTable
  /** Made by the first call: most services have none. */
  #table: EngineRateTable | undefined
  /** Takes that were answered at once, as in memory, and later, as by a store. */
  #atOnce = 0
  #later = 0
  /** The time of the last call that was timed. */
  #lastS = 0

  /** @param watch receives the time of each take, and each decision. */
  constructor(storage: Storage, watch: CallWatch, making: LimiterMaking, room: CallRateRoom = {}) {
    this.#latency = watch.latency
    this.#observer = watch.observer
    this.room = room
    this.#open = () => storage.rateTable(room, making)
    this.#restore = (saved) => storage.rateTable(room, making, saved)
  }

  /**
   * Takes `quantity` tokens of `key` if the rate allows it; 0 tokens change nothing. See `RateTable` of the library.
   *
   * Throws, or rejects with:
   * - `PolicyError` for a key, rate or quantity out of range: the caller's mistake, counted nowhere.
   * - `StoreError` when no decision could be made: an outage, counted as such.
   */
  throttle(key: string, rate: CallRate, quantity: number): Awaitable<Throttled> {
    const isTimed = this.#atOnce < TIMED_FIRST || this.#atOnce % TIMED_EACH === 0
    const startMs = isTimed ? performance.now() : Number.NaN
    try {
      this.#table ??= this.#open()
      const answer = this.#table.throttle(key, rate, quantity)
      if (!(answer instanceof Promise)) return this.#counted(answer, quantity, startMs, true)
      return answer.then(
        (made) => this.#counted(made, quantity, startMs, false),
        (error: unknown) => {
          throw this.#failed(error)
        },
      )
    } catch (error) {
      throw this.#failed(error)
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

  /** Takes by what decided. */
  get sources(): Readonly<Partial<Record<Decision['source'], number>>> {
    const outage = this.#table?.outageDecisions ?? 0
    return { memory: this.#atOnce, store: Math.max(0, this.#later - outage), outage }
  }

  stats(): LimiterStats {
    return this.#table?.stats() ?? NO_TABLE
  }

  /** The `n` keys with the highest demand, and the `n` with the most denials, as text where they are UTF-8. */
  hotKeys(n: number): HotKeys {
    const { demand = [], denials = [] } = this.#table?.hotKeys(n) ?? {}
    return { demand: demand.map(readable), denials: denials.map(readable) }
  }

  close(): void {
    this.#table?.close()
  }

  #counted(answer: Throttled, quantity: number, startMs: number, isAtOnce: boolean): Throttled {
    const outcome = outcomeOf(answer, quantity)
    // Of an answer that came later it is not known whether the store gave it.
    this.#observer?.decided({ policy: undefined, outcome, source: isAtOnce ? 'memory' : undefined })
    if (quantity === 0) {
      this.counts.peeks++
      return answer
    }
    if (!Number.isNaN(startMs)) this.#lastS = (performance.now() - startMs) / 1000
    this.#latency.observe(this.#lastS)
    if (isAtOnce) this.#atOnce++
    else this.#later++
    this.counts[outcome]++
    return answer
  }

  #failed(error: unknown): unknown {
    if (error instanceof StoreError) this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
    return error
  }
}

function outcomeOf({ limited, limit }: Throttled, quantity: number): Outcome {
  if (!limited) return 'allowed'
  return quantity > limit ? 'impossible' : 'denied'
}

/** Keys are bytes, which come as Latin-1. */
function readable(entry: HotKey): HotKey {
  const bytes = Buffer.from(entry.key, 'latin1')
  return isUtf8(bytes) ? { ...entry, key: bytes.toString() } : entry
}
