import type { Clock } from '../time/clock.js'
import type { Duration } from '../time/duration.js'

/** What a look returns. `flag` marks a key without limiting it, `throttle` asks the caller to slow it down, `block` to refuse it. */
export type Verdict = 'pass' | 'flag' | 'throttle' | 'block'

/** A verdict that was given. */
export type GivenVerdict = Exclude<Verdict, 'pass'>

/** When a verdict begins and ends. A number alone is `above`. */
export interface Threshold {
  /** The verdict begins when the count of a key in the window is above this, 1 to 2^32 - 1. */
  readonly above: number
  /** The verdict ends when the count has not been at or above this for the time of `for`; default half of `above`, at most `above`. */
  readonly below?: number
  /** Default: the window. 1 ms to 30 d. */
  readonly for?: Duration
}

/** What {@link createGate} takes. At least one of `flag`, `throttle` and `block`, each above the one before. */
export interface GateOptions {
  /** The time over which a key is counted, 100 ms to 30 d. A count covers the window and up to a seventh of it more. */
  readonly window: Duration
  readonly flag?: number | Threshold
  readonly throttle?: number | Threshold
  readonly block?: number | Threshold
  /** Counters of a row of the sketch, a power of two from 64 to 16,777,216; default 32,768. The error is `e / width` of all counts. */
  readonly width?: number
  /** Rows of the sketch, 1 to 8; default 4. The error is exceeded with the probability `e ** -depth`. */
  readonly depth?: number
  /** Keys that may have a verdict at once, 1 to 1,000,000; default 10,000. */
  readonly maxVerdicts?: number
  /** Keys of the top list, 0 to 100,000; default 100. */
  readonly topKeys?: number
  /** How long a record waits before it is counted, 1 ms to 1 h; default 100 ms. */
  readonly countEvery?: Duration
  /** Default: the precise clock. */
  readonly clock?: Clock
  /** Is called after a verdict began, rose, fell or ended, while records are counted. It must not throw. */
  readonly onVerdict?: (change: VerdictChange) => void
}

/** One request, after it was answered. */
export interface GateRecord {
  /** 1 to 1,024 UTF-16 units. */
  readonly key: string
  /** How much it counts, an integer from 1 to 2^32 - 1, for example bytes; default 1. */
  readonly cost?: number
  /** Unix milliseconds; default: when it is counted. A time ahead of the clock counts as now, one before the window does not count. */
  readonly timeMs?: number
}

/** A verdict that began, rose, fell or ended. */
export interface VerdictChange {
  readonly key: string
  readonly verdict: Verdict
  readonly before: Verdict
  /** The count of the key in the window, never below the true one. */
  readonly count: number
  /** Unix milliseconds of the change. */
  readonly timeMs: number
  /** Unix milliseconds at which it ends unless it is prolonged; of `pass` the time of the change. */
  readonly untilMs: number
}

/** What is known about one key. */
export interface VerdictState {
  readonly verdict: Verdict
  /** Unix milliseconds; 0 of `pass`. */
  readonly untilMs: number
  /** 0 of `pass`, else at least 1: for `Retry-After`. */
  readonly retryAfterMs: number
}

/** A key with a verdict in force. */
export interface VerdictInForce {
  readonly key: string
  readonly verdict: GivenVerdict
  /** The count at its last record. */
  readonly count: number
  readonly sinceMs: number
  readonly untilMs: number
}

/** A key of the top list. */
export interface TopKey {
  readonly key: string
  /** In the window; never below the true count. */
  readonly count: number
}

/** Counts since the gate was created, and its bounds. */
export interface GateStats {
  /** Records that were counted. */
  readonly records: number
  /** Records that wait to be counted. */
  readonly pending: number
  /** Records from before the window, which were left out. */
  readonly late: number
  /** The sum of all costs in the window that ends with the newest record. */
  readonly total: number
  /** Keys with a verdict in force. */
  readonly verdicts: number
  /** Records of keys above a threshold that found no place: there were `maxVerdicts` verdicts of at least that severity. */
  readonly refused: number
  /** Fixed when the gate is created: the sketch and the set of verdicts. */
  readonly memoryBytes: number
  /** `e / width`. A count is at most `epsilon * total` too high, except with the probability `delta`. */
  readonly epsilon: number
  /** `e ** -depth` */
  readonly delta: number
  /** What is taken off a count before it is compared: the error of counts as measured now, at most `epsilon * total`. */
  readonly margin: number
}

/** Looks up verdicts. The set is in shared memory, so that every thread sees a verdict as soon as it was given. */
export interface VerdictReader extends Disposable {
  /**
   * The verdict on a key: one look in memory, without a lock or an allocation. Nothing is counted.
   *
   * @param key 1 to 1,024 UTF-16 units.
   * @throws {PolicyError} `KEY_INVALID`
   * @throws {StoreError} `CLOSED`
   * @example
   * if (gate.check(address) === 'block') return new Response('Too many requests', { status: 429 })
   */
  check(key: string): Verdict
  /**
   * The same with the time of its end.
   *
   * @throws {PolicyError} `KEY_INVALID`
   * @throws {StoreError} `CLOSED`
   */
  inspect(key: string): VerdictState
  /** For a worker thread, see {@link attachGate}. */
  handle(): GateHandle
  /** Every later call throws. Other threads are not affected. */
  close(): void
}

/** Counts requests after they were answered, and gives verdicts on keys whose count in a window is too high. */
export interface Gate extends VerdictReader {
  /**
   * Adds a request to those that wait to be counted, for at most `countEvery`: a few nanoseconds. The thread that created the gate counts.
   *
   * @param cost an integer from 1 to 2^32 - 1.
   * @param timeMs Unix milliseconds; default: when it is counted.
   * @throws {PolicyError} `KEY_INVALID`, `COST_INVALID`, `OPTION_INVALID`
   * @throws {StoreError} `CLOSED`
   */
  record(key: string, cost?: number, timeMs?: number): void
  /** The same for several, such as a batch that a worker thread or a log delivers. */
  recordAll(records: Iterable<GateRecord>): void
  /** Counts now what waits to be counted, and ends verdicts whose time is over. */
  flush(): void
  /** The count of a key in the window, as of the newest record: never below the true count. */
  count(key: string): number
  /** The keys with the highest counts in the window that ends with the newest record, highest first. */
  top(n?: number): TopKey[]
  /** Keys with a verdict in force, in no order. */
  verdicts(): VerdictInForce[]
  stats(): GateStats
}

/** A gate for another thread: opaque and structured-clonable. */
export interface GateHandle {
  readonly sluicegate: 1
}
