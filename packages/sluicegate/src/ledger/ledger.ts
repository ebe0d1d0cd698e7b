import type { TurnOptions } from '../arguments.js'
import { PolicyError } from '../errors.js'
import type { InnerLimiter } from '../layers/layer.js'
import { checkFunction, checkInteger, checkOptions } from '../options/option-checks.js'
import { type Clock, checkClock, unheldClock, wallClock } from '../time/clock.js'
import { checkedMs, type Duration } from '../time/duration.js'
import { RECORDED, type Recording } from '../watch-options.js'
import type { LedgerRecord, LedgerSink } from './ledger-record.js'
import type { LedgerEntry, LedgerWriter, SummedWork } from './ledger-writer.js'
import { RecordedLimiter } from './recorded-limiter.js'

/** What {@link createLedger} takes beside the sink. */
export interface LedgerOptions extends TurnOptions {
  /**
   * How often records are appended: what a process that is killed loses at most, beside the batch that is under way. From 1 ms to one hour.
   *
   * @defaultValue `'1s'`
   * @example createLedger(sink, { every: '200ms' })
   */
  readonly every?: Duration
}

/** How a ledger stands. */
export interface LedgerStats {
  /** Records that the sink has taken. */
  readonly appended: number
  /** Records that found no room, or whose batch the sink rejected: their numbers are missing in the ledger. */
  readonly lost: number
  /** Records that wait for the sink. */
  readonly waiting: number
  /** Works that are open. */
  readonly open: number
}

/** What limiters write to, as their option `ledger`; one may serve any number of limiters. */
export interface Ledger extends Recording {
  stats(): LedgerStats
  /** Appends all that has happened. Resolves when the sink has answered. */
  flush(): Promise<void>
  /** {@link Ledger.flush}; what happens later is not recorded. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const OPTIONS: readonly string[] = ['every', 'maxWaiting', 'clock'] satisfies (keyof LedgerOptions)[]
/** Records in one call of the sink. */
const MOST_AT_ONCE = 500

/**
 * A ledger of what limiters do: each record at most once, and in the order in which it happened in this process, so also for each key. What a work adds
 * is summed between two batches. Decisions never wait for it: a sink that is slow or gone costs records, not requests.
 *
 * @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID`, `DURATION_INVALID`, `CLOCK_INVALID`
 * @example
 * const ledger = createLedger(postgresLedger(pool))
 * const limiter = createLimiter(policy, { ledger })
 */
export function createLedger(sink: LedgerSink, options: LedgerOptions = {}): Ledger {
  const { every = '1s', maxWaiting = 10_000, clock = wallClock() } = checkOptions(options, OPTIONS, "{ every: '1s' }", 'createLedger()')
  if (typeof sink?.append !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'sink', sink, 'must have append(records), as what postgresLedger(pool) returns')
  }
  checkInteger('maxWaiting', maxWaiting, 1, 1_000_000)
  checkClock(clock)
  checkFunction('clock.after', clock.after)
  return new BufferedLedger(sink, { everyMs: checkedMs('every', every, 1, 3_600_000), maxWaiting, clock })
}

class BufferedLedger implements Ledger, LedgerWriter {
  private readonly sink: LedgerSink
  private readonly everyMs: number
  private readonly maxWaiting: number
  private readonly clock: Clock
  private readonly writer = writerName()
  private readonly works = new Set<SummedWork>()
  private waiting: LedgerRecord[] = []
  private number = 0
  private holds = 0
  private appended = 0
  private lost = 0
  private isTimed = false
  private isClosed = false
  /** The batches under way, one after the other. */
  private flight: Promise<void> | undefined

  constructor(
    sink: LedgerSink,
    { everyMs, maxWaiting, clock }: { readonly everyMs: number; readonly maxWaiting: number; readonly clock: Clock },
  ) {
    this.sink = sink
    this.everyMs = everyMs
    this.maxWaiting = maxWaiting
    this.clock = unheldClock(clock)
  }

  [RECORDED](limiter: object): object {
    return new RecordedLimiter(limiter as InnerLimiter, this)
  }

  stats(): LedgerStats {
    return { appended: this.appended, lost: this.lost, waiting: this.waiting.length, open: this.works.size }
  }

  flush(): Promise<void> {
    for (const work of this.works) if (!work.sum()) this.works.delete(work)
    if (this.waiting.length === 0) return this.flight ?? Promise.resolve()
    this.flight ??= this.appendAll().then(() => {
      this.flight = undefined
      return this.flushed()
    })
    return this.flight
  }

  /** What came between the last batch and its end. */
  private flushed(): Promise<void> | undefined {
    return this.waiting.length > 0 ? this.flush() : undefined
  }

  async close(): Promise<void> {
    // What a batch under way does not have is in the next one.
    await this.flight
    await this.flush()
    this.isClosed = true
    this.works.clear()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  // For limiters. None of these throws or waits.

  get hasRoom(): boolean {
    return this.waiting.length < this.maxWaiting
  }

  write(entry: LedgerEntry): void {
    if (this.isClosed) return
    // A lost record has a number, too: the gap says so.
    const number = ++this.number
    if (this.hasRoom) this.waiting.push({ writer: this.writer, number, atMs: this.clock.nowMs(), ...entry })
    else this.lost++
    this.flushLater()
  }

  follow(work: SummedWork): void {
    if (this.isClosed) return
    this.works.add(work)
    this.flushLater()
  }

  unfollow(work: SummedWork): void {
    this.works.delete(work)
  }

  nextHold(): number {
    return ++this.holds
  }

  private flushLater(): void {
    if (this.isTimed || this.isClosed) return
    this.isTimed = true
    const due = (): void => {
      this.isTimed = false
      void this.flush()
      if (this.works.size > 0 || this.waiting.length > 0) this.flushLater()
    }
    this.clock.after?.(this.everyMs, due)
  }

  private async appendAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const batch = this.waiting.splice(0, MOST_AT_ONCE)
      try {
        await this.sink.append(batch)
        this.appended += batch.length
      } catch {
        // It may have been appended: once more would be twice.
        this.lost += batch.length
      }
    }
  }
}

function writerName(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(12))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
