/**
 * Where a limiter gets its time. Readings are milliseconds since the Unix epoch, fractions allowed; the limiter rounds
 * them to the nearest microsecond. A clock should never run back. If it does, no extra tokens are granted, and no key is
 * denied longer than the step.
 */
export interface Clock {
  nowMs(): number
  /** A timer on this clock: calls `fn` once, `ms` from now; the returned function cancels it. */
  after?(ms: number, fn: () => void): () => void
}

/** Calls `fn` once, `ms` from now; the returned function cancels it. */
export type After = NonNullable<Clock['after']>

/**
 * A clock that moves only by {@link ManualClock.advance} and {@link ManualClock.set}, which fire its timers. A worker thread that attaches a
 * handle reads the same time; its timers fire as soon as it notices the move.
 */
export interface ManualClock extends Clock {
  after(ms: number, fn: () => void): () => void
  /** Moves the time by `ms` (a negative step is allowed) and fires the timers that fell due, in order. */
  advance(ms: number): void
  /** Moves the time to `ms` since the Unix epoch and fires the timers that fell due, in order. */
  set(ms: number): void
}
