/**
 * Where a limiter gets its time. Readings are milliseconds since the Unix epoch, fractions allowed; the limiter rounds
 * them to the nearest microsecond. A clock should never run back: when it does, nothing is granted and nobody is held
 * longer than the step.
 */
export interface Clock {
  nowMs(): number
  /** A timer on this clock: calls `fn` once, `ms` from now; the returned function cancels it. */
  after?(ms: number, fn: () => void): () => void
}

/**
 * A clock that moves only when told to; its timers fire inside {@link ManualClock.advance}. A worker thread to which a handle took it
 * reads the same time; its own timers fire once it hears of the move.
 */
export interface ManualClock extends Clock {
  after(ms: number, fn: () => void): () => void
  /** Moves the time by `ms` (a negative step is allowed) and fires the timers that fell due, in order. */
  advance(ms: number): void
  /** Moves the time to `ms` since the Unix epoch and fires the timers that fell due, in order. */
  set(ms: number): void
}
