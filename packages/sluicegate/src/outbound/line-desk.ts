import type { Line } from './line.js'

/** What a line needs of those around it. */
export interface LineDesk {
  readonly concurrency: number
  readonly maxPauseMs: number
  readonly bodyStallMs: number
  nowMs(): number
  wakeAt(line: Line, ms: number): void
  sleepOn(line: Line): void
  /** Calls `fn` in so many milliseconds, unless the returned function was called before. Nobody waits for it. */
  aside(ms: number, fn: () => void): () => void
  /** @param isAgain whether it was sent before. */
  granted(isAgain: boolean): void
  /** What was granted was not sent. */
  withdrawn(isAgain: boolean): void
  /** Returns what a hook says. */
  throttled(line: Line, status: number, retryAfterMs: number | undefined): unknown
  /** Nothing waits and nothing is under way. */
  rested(line: Line): void
}
