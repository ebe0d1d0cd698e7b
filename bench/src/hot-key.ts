import { type Policy, slidingLog } from 'sluicegate'

/** A measurement of several worker threads on one key, or on many. */
export interface HotKeyJob {
  readonly algorithm: 'token-bucket' | 'sliding-log'
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

/** Always allowed, as {@link ALLOW}: 50 tokens a microsecond, or of each of many keys 100 in a millisecond. */
export function logPolicy(keys: number): Policy {
  return slidingLog({ limit: keys === 1 ? 50_000 : 100, window: '1ms' })
}

/** Takes in one turn of the event loop: a burst long enough that the turn itself costs next to nothing. */
export const BURST_TAKES = 1_024

/** Milliseconds on the machine's monotonic clock, the same in all threads. */
export function sharedMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
