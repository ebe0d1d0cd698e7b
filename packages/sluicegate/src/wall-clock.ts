import type { Clock } from './clock-interface.js'

/** A sleeping caller reads the wall clock again after this time, because the clock may have been stepped. */
const LONGEST_SLEEP_MS = 60_000

/** The wall clock and real timers, or what stands in for them in a test. */
export interface WallTime {
  nowMs(): number
  after(ms: number, fn: () => void): () => void
}

/** A clock that reads the wall clock each time. Its timers fire once the wall clock is there, at most a minute late after a step forward. */
export function wallOver(time: WallTime): Required<Clock> {
  const after = (ms: number, fn: () => void): (() => void) => {
    const atMs = time.nowMs() + ms
    let cancel: () => void
    const sleep = (): void => {
      const leftMs = atMs - time.nowMs()
      cancel = time.after(Math.max(0, Math.min(leftMs, LONGEST_SLEEP_MS)), () => (time.nowMs() < atMs ? sleep() : fn()))
    }
    sleep()
    return () => cancel()
  }
  return { nowMs: () => time.nowMs(), after }
}
