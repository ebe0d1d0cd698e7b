import type { Clock } from './clock.js'

/** A clock without the steps back of another: where that one runs back, this one stands still for a reading and goes on from there. */
export function forwardClock(clock: Clock): Clock {
  let lastMs = Number.NEGATIVE_INFINITY
  let skippedMs = 0
  return {
    nowMs() {
      const ms = clock.nowMs()
      if (!Number.isFinite(ms)) return ms
      if (ms < lastMs) skippedMs += lastMs - ms
      lastMs = ms
      return ms + skippedMs
    },
  }
}
