import { type HotKeys, TopLists } from '../decision/hot-keys.js'
import { contentionError } from '../errors.js'
import type { LimiterStats } from '../limiter.js'
import { fingerprint, high, low } from '../memory/fingerprint.js'
import type { OpenCore } from '../memory/open-core.js'
import { untouchedBytes } from '../memory/policy-record.js'
import { Shown, shownAs } from '../shown.js'
import { type Clock, clockHandle, type Ticker, tickerOf } from '../time/clock.js'
import { type CallRate, intervalNsOf } from './call-rate.js'
import { checkCallKey, checkQuantity, throttled } from './checked-call.js'
import type { RateTable, Throttled } from './rate-table.js'
import type { MemoryTableHandle } from './table-handle.js'
import { type TableDescription, tableSnapshot } from './table-snapshot.js'

/** The table in shared memory: hashes keys, reads the clock, and makes five numbers of what the core returns. */
export class MemoryRateTable extends Shown implements RateTable {
  readonly #opened: OpenCore
  readonly #clock: Clock
  readonly #ticker: Ticker
  readonly #secret: readonly [number, number]
  readonly #room: Pick<TableDescription, 'maxKeys' | 'growTo'>
  readonly #top: TopLists

  constructor(
    opened: OpenCore,
    clock: Clock,
    secret: readonly [number, number],
    room: Pick<TableDescription, 'maxKeys' | 'growTo'>,
    top: TopLists = new TopLists(0),
  ) {
    super()
    this.#top = top
    this.#opened = opened
    this.#clock = clock
    this.#ticker = tickerOf(clock)
    this.#secret = secret
    this.#room = room
  }

  throttle(key: string, rate: CallRate, quantity = 1): Throttled {
    checkCallKey(key)
    checkQuantity(quantity)
    const intervalNs = intervalNsOf(rate)
    const limit = rate.maxBurst + 1
    const tokens = Math.min(quantity, limit + 1)
    const { us } = this.#ticker
    const nowUs = Number.isNaN(us) ? this.#ticker.read() : us
    const { core } = this.#opened
    fingerprint(key, this.#secret[0], this.#secret[1])
    let answer = core.takeAtRate(low, high, nowUs, intervalNs, limit, tokens)
    if (Number.isNaN(answer)) {
      const reason = this.#opened.reason()
      if (reason === 'REFUSED') {
        if (quantity > 0) this.#top.count(key, false)
        return withoutRoom(limit, core.detailOfUnanswered())
      }
      if (reason !== 'EVICTED') throw contentionError()
      answer = core.detailOfUnanswered()
    }
    const limited = answer < 0
    if (quantity > 0) this.#top.count(key, !limited)
    const lateMs = limited ? core.lateMs() : -1
    return throttled(rate, intervalNs, { limited, leftUs: core.leftUs(), lateMs, owedMs: core.owedMs() })
  }

  reset(key: string): void {
    checkCallKey(key)
    fingerprint(key, this.#secret[0], this.#secret[1])
    const answer = this.#opened.core.reset(low, high, this.#ticker.read())
    if (Number.isNaN(answer) && this.#opened.reason() === 'CONTENDED') throw contentionError()
  }

  handle(): MemoryTableHandle {
    const { memory, section } = this.#opened
    const handle: MemoryTableHandle = {
      sluicegate: 1,
      memory,
      section,
      secret: this.#secret,
      clock: clockHandle(this.#clock),
      ...this.#room,
    }
    return shownAs(handle, 'RateTableHandle', {})
  }

  snapshot(): Uint8Array {
    return tableSnapshot(this.#opened, { rateTable: true, ...this.#room, secret: this.#secret }, this.#ticker.read())
  }

  stats(): LimiterStats {
    return { decisions: {}, ...this.#opened.counters(), memoryBytes: this.#opened.memory.buffer.byteLength - untouchedBytes(this.#opened) }
  }

  hotKeys(n?: number): HotKeys {
    return this.#top.top(n)
  }

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
