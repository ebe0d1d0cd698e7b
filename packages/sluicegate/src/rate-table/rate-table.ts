import { type Clock, clockHandle, type Ticker, tickerOf } from '../clock.js'
import { PolicyError, StoreError } from '../errors.js'
import type { LimiterStats } from '../limiter.js'
import { fingerprint, high, low } from '../memory/fingerprint.js'
import type { OpenCore } from '../memory/open-core.js'
import { untouchedBytes } from '../memory/policy-record.js'
import { Shown } from '../shown.js'
import { type CallRate, checkedQuantity, intervalNsOf } from './call-rate.js'
import type { RateTableHandle } from './table-handle.js'

/** What {@link RateTable.throttle} returns: the five numbers of `CL.THROTTLE` in redis-cell. */
export interface Throttled {
  /** Whether the quantity was denied. Then nothing was charged. */
  readonly limited: boolean
  /** The most tokens at once: `maxBurst + 1`. */
  readonly limit: number
  /** Tokens left, from 0 to `limit`. */
  readonly remaining: number
  /** Seconds until the same call passes; -1 when it passed, and when it never can. A part of a second counts as one from 1 ms on. */
  readonly retryAfterS: number
  /** Seconds until the key is full, rounded likewise. */
  readonly resetAfterS: number
}

/** In UTF-16 units. The table stores no keys: the bound is for the time that hashing takes. */
const MAX_KEY_LENGTH = 16_384

/**
 * Keys in shared memory whose rate comes with each call: the decisions of redis-cell's `CL.THROTTLE`, for any number of rates in one table.
 * A key takes one word, its theoretical arrival time in nanoseconds, so that calls of different rates on one key share its state.
 */
export class RateTable extends Shown {
  readonly #opened: OpenCore
  readonly #clock: Clock
  readonly #ticker: Ticker
  readonly #secret: readonly [number, number]

  constructor(opened: OpenCore, clock: Clock, secret: readonly [number, number]) {
    super()
    this.#opened = opened
    this.#clock = clock
    this.#ticker = tickerOf(clock)
    this.#secret = secret
  }

  /**
   * Takes `quantity` tokens of `key` if the rate allows it; 0 tokens change nothing and return what is left.
   *
   * @param key 0 to 16,384 UTF-16 units.
   * @param quantity an integer of at least 0; more than `maxBurst + 1` never pass.
   * @throws {PolicyError} `KEY_INVALID`, `COST_INVALID`, or `LIMIT_INVALID` and `RANGE_UNSUPPORTED` for the rate.
   * @throws {StoreError} `CONTENTION`
   * @example
   * const { limited, retryAfterS } = table.throttle('user:42', { maxBurst: 15, count: 30, periodS: 60 })
   */
  throttle(key: string, rate: CallRate, quantity = 1): Throttled {
    if (typeof key !== 'string' || key.length > MAX_KEY_LENGTH) {
      throw new PolicyError('KEY_INVALID', 'key', key, `must be a string of at most ${MAX_KEY_LENGTH} characters`)
    }
    const intervalNs = intervalNsOf(rate)
    const limit = rate.maxBurst + 1
    const tokens = Math.min(checkedQuantity(quantity), limit + 1)
    const { us } = this.#ticker
    const nowUs = Number.isNaN(us) ? this.#ticker.read() : us
    const { core } = this.#opened
    fingerprint(key, this.#secret[0], this.#secret[1])
    let answer = core.takeAtRate(low, high, nowUs, intervalNs, limit, tokens)
    if (Number.isNaN(answer)) {
      const reason = this.#opened.reason()
      if (reason === 'REFUSED') return withoutRoom(limit, core.detailOfUnanswered())
      if (reason !== 'EVICTED') throw contended()
      answer = core.detailOfUnanswered()
    }
    const limited = answer < 0
    // redis-cell divides whole microseconds.
    const left = Math.trunc(core.leftUs() / Math.trunc(intervalNs / 1000))
    const lateMs = limited ? core.lateMs() : -1
    return {
      limited,
      limit,
      remaining: left > 0 ? Math.min(left, limit) : 0,
      retryAfterS: lateMs < 0 ? -1 : Math.ceil(lateMs / 1000),
      resetAfterS: Math.ceil(core.owedMs() / 1000),
    }
  }

  /** Makes the key full again. */
  reset(key: string): void {
    fingerprint(key, this.#secret[0], this.#secret[1])
    const answer = this.#opened.core.reset(low, high, this.#ticker.read())
    if (Number.isNaN(answer) && this.#opened.reason() === 'CONTENDED') throw contended()
  }

  /** For a worker thread, see {@link attachRateTable}. */
  handle(): RateTableHandle {
    const { memory, section } = this.#opened
    return { sluicegate: 1, memory, section, secret: this.#secret, clock: clockHandle(this.#clock) }
  }

  stats(): LimiterStats {
    return { ...this.#opened.counters(), memoryBytes: this.#opened.memory.buffer.byteLength - untouchedBytes(this.#opened) }
  }

  /** Every later call throws. Other threads are not affected. */
  close(): void {
    this.#opened.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  override toJSON(): object {
    return { keys: this.#opened.counters().keys }
  }
}

/** A new key that finds only keys that are being denied, or may be: it waits until one of them owes nothing. */
function withoutRoom(limit: number, waitUs: number): Throttled {
  const waitS = Math.ceil(waitUs / 1_000_000)
  return { limited: true, limit, remaining: 0, retryAfterS: waitS, resetAfterS: waitS }
}

function contended(): StoreError {
  return new StoreError('CONTENTION', 'other threads kept changing this key, and the call gave up after a bounded wait: call again')
}
