/** A measurement of several worker threads on one key, or on many. */
export interface HotKeyJob {
  readonly keys: number
  readonly store: 'lock-free' | 'mutex'
  readonly workers: number
  readonly clock: 'coarse' | 'precise'
  readonly boundKey: boolean
  readonly repeatMs: number
}

/** What the main thread gives a worker. */
export interface HotKeyStart {
  readonly job: HotKeyJob
  readonly handle: unknown
}

/** What a worker did in one repeat, on a clock that all threads of a process share. */
export interface Stint {
  readonly fromMs: number
  readonly untilMs: number
  readonly takes: number
  readonly allowed: number
}

/** Takes in one turn of the event loop: a burst long enough that the turn itself costs next to nothing. */
export const BURST_TAKES = 1_024

/** Milliseconds on the machine's monotonic clock, the same in all threads. */
export function sharedMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
