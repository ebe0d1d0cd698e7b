import type { Calendar } from './calendar.js'

/** How a policy counts. */
export type Algorithm = 'token-bucket' | 'gcra' | 'fixed-window' | 'sliding-window' | 'sliding-log' | 'concurrency' | 'all-of'

/** Frozen data: knows no key, clock or store. Made by {@link tokenBucket} and its siblings, one function an algorithm. */
export interface Policy {
  readonly algorithm: Algorithm
  /** Printable ASCII, at most 120 characters; default `<algorithm>-<limit>-<window>`. */
  readonly name: string
  /** Tokens a window, 1 to 1,000,000,000. Of `concurrency` how many may be in flight; of `allOf` the least of its parts. */
  readonly limit: number
  /** The window in milliseconds, a whole number of microseconds from 1 ms to 366 days. Of `concurrency` the time to live of a permit. */
  readonly windowMs: number
  /** Tokens that may be spent at once, 1 to 1,000,000,000; the limit itself where an algorithm knows no other burst. */
  readonly burst: number
  /** Fixed window: windows of the calendar instead of `windowMs`, which is then the length of the longest one. */
  readonly calendar?: Calendar
  /** Sliding window: `compact` for counters with random increments. */
  readonly counters?: 'compact'
  /** Sliding log: bytes a slot. */
  readonly slotBytes?: 4 | 8
  /** Of `allOf`: the policies that all have to agree. */
  readonly policies?: readonly Policy[]
}

/** A policy whose takes answer with permits, see {@link concurrency}. */
export interface ConcurrencyPolicy extends Policy {
  readonly algorithm: 'concurrency'
}

/** Several policies as one, see {@link allOf}. */
export interface AllOfPolicy<Parts extends readonly Policy[] = readonly Policy[]> extends Policy {
  readonly algorithm: 'all-of'
  readonly policies: Parts
}
