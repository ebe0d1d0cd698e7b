import { PolicyError } from '../errors.js'
import type { ManualClock } from './clock-interface.js'
import { waitAsync } from './wait-async.js'

interface ManualTimer {
  readonly atMs: number
  readonly fn: () => void
}

/**
 * A clock over a time that threads share, the bits of a double. Where it was made, its timers fire while it is moved; where a handle
 * attached it, `isMovedElsewhere`, as soon as this thread notices the move.
 */
export function manualOver(shared: SharedArrayBuffer, isMovedElsewhere: boolean): ManualClock {
  const cell = new BigInt64Array(shared)
  const bits = new BigInt64Array(1)
  const float = new Float64Array(bits.buffer)
  const timers = new Set<ManualTimer>()
  let isWatching = false

  const nowMs = (): number => {
    bits[0] = Atomics.load(cell, 0)
    return float[0] as number
  }
  const store = (ms: number): void => {
    float[0] = ms
    Atomics.store(cell, 0, bits[0] as bigint)
  }
  const fireUntil = (ms: number, before: (timer: ManualTimer) => void): void => {
    for (let due = firstDue(timers, ms); due !== undefined; due = firstDue(timers, ms)) {
      timers.delete(due)
      before(due)
      due.fn()
    }
  }
  const set = (ms: number): void => {
    checkMs(ms)
    const isBack = ms < nowMs()
    fireUntil(ms, ({ atMs }) => store(Math.max(nowMs(), atMs)))
    // One of the timers may have moved the time on.
    store(isBack ? ms : Math.max(nowMs(), ms))
    Atomics.notify(cell, 0)
  }
  const advance = (ms: number): void => {
    checkMs(ms)
    set(nowMs() + ms)
  }
  const watch = async (): Promise<void> => {
    if (isWatching || waitAsync === undefined) return
    isWatching = true
    try {
      // No timer fires within the call that sets it.
      await undefined
      while (timers.size > 0) {
        // Read before the timers are looked at: a move after that ends the wait at once.
        const seen = Atomics.load(cell, 0)
        fireUntil(nowMs(), () => undefined)
        if (timers.size > 0) await waitAsync(cell, 0, seen).value
      }
    } finally {
      isWatching = false
    }
  }
  const after = (ms: number, fn: () => void): (() => void) => {
    const timer = { atMs: nowMs() + ms, fn }
    timers.add(timer)
    if (isMovedElsewhere) {
      // A timer that is already due would otherwise fire only with the next move.
      if (isWatching && timer.atMs <= nowMs()) Atomics.notify(cell, 0)
      void watch()
    }
    return () => void timers.delete(timer)
  }
  return { nowMs, set, advance, after }
}

function checkMs(ms: unknown): void {
  if (!Number.isFinite(ms)) throw new PolicyError('CLOCK_INVALID', 'ms', ms, 'must be a finite number of milliseconds')
}

function firstDue(timers: ReadonlySet<ManualTimer>, byMs: number): ManualTimer | undefined {
  let first: ManualTimer | undefined
  for (const timer of timers) {
    if (timer.atMs <= byMs && (first === undefined || timer.atMs < first.atMs)) first = timer
  }
  return first
}
