import type { Line } from './line.js'

/** What a line needs of those around it. */
export interface LineDesk {
  readonly concurrency: number
  readonly maxPauseMs: number
  nowMs(): number
  wakeAt(line: Line, ms: number): void
  sleepOn(line: Line): void
  /** Calls `fn` in so many milliseconds, unless the returned function was called before. */
  after(ms: number, fn: () => void): () => void
  granted(): void
  /** What was granted was not sent. */
  withdrawn(): void
  throttled(line: Line, status: number, retryAfterMs: number | undefined): void
  /** Nothing waits and nothing is under way. */
  rested(line: Line): void
}
