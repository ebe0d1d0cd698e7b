import { PolicyError } from '../errors.js'
import { onceInProcess } from '../once-in-process.js'
import type { Clock, ManualClock } from './clock-interface.js'
import { manualOver } from './manual-clock.js'
import { type MachineTime, machineTime, Suspension } from './suspension.js'

export type { After, Clock, ManualClock } from './clock-interface.js'

/** The clock in a handle, so that a worker thread reads the same time. */
export type ClockHandle =
  | { readonly kind: 'precise' | 'coarse'; readonly unixMs: number; readonly monotonicMs: number }
  | { readonly kind: 'wall' }
  | { readonly kind: 'manual'; readonly shared: SharedArrayBuffer }
  | { readonly kind: 'custom' }

const MAX_TIMEOUT_MS = 2 ** 31 - 1
/** Comparisons of two clocks, of which the quickest counts. The first of a thread runs cold, and any may be interrupted. */
const COMPARISONS = 16
const LEAST_UPTIME_MS = 1
const handles = /* @__PURE__ */ onceInProcess('clock handles', () => new WeakMap<Clock, () => ClockHandle>())
const tickers = /* @__PURE__ */ onceInProcess('clock tickers', () => new WeakMap<Clock, Ticker>())

/** How a limiter reads its clock: in whole microseconds, and without a call while a reading still holds. */
export interface Ticker {
  /** The reading that holds now, or NaN when there is none. */
  us: number
  /** A new reading. */
  read(): number
}

/** The ticker behind one of this file's clocks, or one that asks any other clock each time. */
export function tickerOf(clock: Clock): Ticker {
  return tickers.get(clock) ?? { us: Number.NaN, read: () => wholeUs(clock.nowMs()) }
}

/** @throws {PolicyError} `CLOCK_INVALID` for what is no clock */
export function checkClock(clock: unknown): asserts clock is Clock {
  if (typeof (clock as Clock | undefined)?.nowMs === 'function') return
  const mend = 'must have nowMs(): pass preciseClock(), coarseClock() or your own, which each thread is given again'
  throw new PolicyError('CLOCK_INVALID', 'clock', clock, mend)
}

/** Whether a time is representable in whole microseconds. */
export function isReading(ms: unknown): boolean {
  return !Number.isNaN(roundedUs(ms))
}

/** A time in whole microseconds, NaN if it is not representable. */
function roundedUs(ms: unknown): number {
  const us = typeof ms === 'number' ? Math.round(ms * 1000) : Number.NaN
  return Number.isSafeInteger(us) ? us : Number.NaN
}

/** @throws {PolicyError} `CLOCK_INVALID` when the clock reads nothing usable. */
function wholeUs(ms: unknown): number {
  const us = roundedUs(ms)
  if (!Number.isNaN(us)) return us
  const mend = 'nowMs() must return a number of milliseconds since the Unix epoch, within 285 years of it'
  throw new PolicyError('CLOCK_INVALID', 'clock', ms, mend)
}

/**
 * One reading of the monotonic clock a call, anchored once to Unix time: 30 to 40 ns. The default. Made under a test's fake timers it
 * follows them. Time for which the machine slept counts, from a quarter of a second after waking on, in Node.js: other runtimes do not tell it from
 * a wall clock that was set.
 *
 * @example createLimiter(policy, { clock: preciseClock() })
 */
export function preciseClock(): Clock {
  return isTimeMocked() ? mockedClock() : preciseFrom(anchor())
}

/**
 * One reading per turn of the event loop, reused by every take of that turn. Saves most of a reading's cost from about
 * three takes a turn on. Time stands still inside a turn, so in real time a limiter may admit up to
 * `rate * length of the turn` late or early; the exact bound holds in clock readings.
 *
 * @example createLimiter(policy, { clock: coarseClock() })
 */
export function coarseClock(): Clock {
  return isTimeMocked() ? mockedClock() : coarseFrom(anchor())
}

/**
 * One reading of the wall clock a call, in whole milliseconds: the default under windows of the calendar. It follows each step of the wall
 * clock: after a step forward the window of the new time is open at once; after a step back a key is closed until the window begins again
 * that it was last used in, no longer than the step.
 *
 * @example createLimiter(fixedWindow({ limit: 1000, window: 'day' }), { clock: wallClock() })
 */
export function wallClock(): Clock {
  return wallFrom(afterRealMs)
}

/**
 * A clock for tests, standing at `startMs` (default 0) until moved.
 *
 * @throws {PolicyError} `CLOCK_INVALID` when a time is not a finite number.
 * @example
 * const clock = manualClock(); const limiter = createLimiter(policy, { clock }); clock.advance(100)
 */
export function manualClock(startMs = 0): ManualClock {
  const clock = manualFrom(new SharedArrayBuffer(8), false)
  clock.set(startMs)
  return clock
}

/** The same clock with timers that do not keep the process alive. A custom clock keeps its own timers. */
export function unheldClock(clock: Clock): Clock {
  if (clockHandle(clock).kind === 'wall') return wallFrom(afterUnheld)
  if (clock.after !== undefined && clock.after !== afterRealMs) return clock
  const unheld: Clock = { nowMs: () => clock.nowMs(), after: afterUnheld }
  tickers.set(unheld, tickerOf(clock))
  return unheld
}

/** The handle with which a worker thread reads the same time as `clock`. */
export function clockHandle(clock: Clock): ClockHandle {
  return handles.get(clock)?.() ?? { kind: 'custom' }
}

/** The clock of a handle, in this thread; undefined for a custom clock, which only its owner can make again. */
export function clockFromHandle(handle: ClockHandle): Clock | undefined {
  switch (handle.kind) {
    case 'precise':
      return preciseFrom(handle.unixMs - handle.monotonicMs + offsetOfThisThread())
    case 'coarse':
      return coarseFrom(handle.unixMs - handle.monotonicMs + offsetOfThisThread())
    case 'wall':
      return wallClock()
    case 'manual':
      return manualFrom(handle.shared, true)
    case 'custom':
      return undefined
  }
}

/** Unix time of `performance.now() === 0` in this thread. */
function anchor(): number {
  return performance.timeOrigin
}

/**
 * Milliseconds from the machine's monotonic zero to this thread's `performance.now() === 0`. Threads start at different
 * times, and their `timeOrigin`s disagree once the wall clock was stepped between; the monotonic clock never does.
 */
function offsetOfThisThread(): number {
  const hrtime = globalThis.process?.hrtime
  if (hrtime === undefined) return performance.timeOrigin
  let offsetMs = 0
  let leastMs = Number.POSITIVE_INFINITY
  for (let comparison = 0; comparison < COMPARISONS; comparison++) {
    // The time between the readings is an error of the offset: at most half of the time between the outer readings.
    const beforeMs = performance.now()
    const [seconds, nanoseconds] = hrtime()
    const afterMs = performance.now()
    if (afterMs - beforeMs >= leastMs) continue
    leastMs = afterMs - beforeMs
    offsetMs = seconds * 1e3 + nanoseconds / 1e6 - (beforeMs + afterMs) / 2
  }
  // Bun and Deno count from the start of the thread, which says nothing of others. No machine runs a program in its first millisecond.
  return Math.abs(offsetMs) < LEAST_UPTIME_MS ? performance.timeOrigin : offsetMs
}

/** The time of a test's fake timers: `Date`, as not all of them move `performance`. Another thread has none of it. */
function mockedClock(): Clock {
  return { nowMs: () => Date.now(), after: afterRealMs }
}

/** @param time for tests; that of this machine otherwise. */
export function preciseFrom(originMs: number, time?: MachineTime): Clock {
  const own = awakeFrom(originMs, time)
  const clock: Clock = { nowMs: own.nowMs, after: afterRealMs }
  tickers.set(clock, { us: Number.NaN, read: () => Math.round(own.nowMs() * 1000) })
  handles.set(clock, () => ({ kind: 'precise', unixMs: own.originMs(), monotonicMs: offsetOfThisThread() }))
  return clock
}

/** Unix time by the monotonic clock, and by what that misses while the machine sleeps. */
function awakeFrom(startMs: number, time = machineTime()): { nowMs(): number; originMs(): number } {
  const suspension = new Suspension(time)
  let originMs = startMs
  let nextMs = suspension.nextMs
  const look = (awakeMs: number): void => {
    originMs += suspension.look(awakeMs)
    nextMs = suspension.nextMs
  }
  return {
    nowMs: () => {
      const awakeMs = time.awakeMs()
      if (awakeMs >= nextMs) look(awakeMs)
      return originMs + awakeMs
    },
    originMs: () => originMs,
  }
}

function coarseFrom(startMs: number): Clock {
  const own = awakeFrom(startMs)
  const forget = (): void => {
    ticker.us = Number.NaN
  }
  const ticker: Ticker = {
    us: Number.NaN,
    read() {
      if (Number.isNaN(ticker.us)) setImmediate(forget)
      ticker.us = Math.round(own.nowMs() * 1000)
      return ticker.us
    },
  }
  const clock: Clock = { nowMs: () => (Number.isNaN(ticker.us) ? ticker.read() : ticker.us) / 1000, after: afterRealMs }
  tickers.set(clock, ticker)
  handles.set(clock, () => ({ kind: 'coarse', unixMs: own.originMs(), monotonicMs: offsetOfThisThread() }))
  return clock
}

/** Calls `fn` once, `ms` of real time from now, unless the returned function is called; it keeps no process alive. */
export function afterUnheld(ms: number, fn: () => void): () => void {
  return afterRealMs(ms, fn, false)
}

/** The same with a timer that keeps the process alive, for a caller that awaits it. */
export function afterHeld(ms: number, fn: () => void): () => void {
  return afterRealMs(ms, fn)
}

/** @param isHeld whether it keeps the process alive. */
function afterRealMs(ms: number, fn: () => void, isHeld = true): () => void {
  let timer: ReturnType<typeof setTimeout>
  // A delay of 2^31 ms or more would fire at once, so a long one is slept in stretches.
  const sleep = (leftMs: number): void => {
    const stretchMs = Math.min(leftMs, MAX_TIMEOUT_MS)
    timer = setTimeout(() => (leftMs > stretchMs ? sleep(leftMs - stretchMs) : fn()), stretchMs)
    // In other runtimes than Node.js a timer may be a number.
    if (!isHeld) (timer as { unref?: () => void }).unref?.()
  }
  sleep(ms)
  return () => clearTimeout(timer)
}

function wallFrom(after: (ms: number, fn: () => void) => () => void): Clock {
  const clock = wallOver({ nowMs: () => Date.now(), after })
  handles.set(clock, () => ({ kind: 'wall' }))
  return clock
}

function manualFrom(shared: SharedArrayBuffer, isMovedElsewhere: boolean): ManualClock {
  const clock = manualOver(shared, isMovedElsewhere)
  handles.set(clock, () => ({ kind: 'manual', shared }))
  return clock
}

/**
 * Whether a test has put its own in the place of `Date`, which then moves only when the test says so: fake timers of Jest, Vitest and Sinon
 * (all of them `@sinonjs/fake-timers`, which leaves `clock` on what it replaces) and of `node:test` (`isMock`).
 */
function isTimeMocked(): boolean {
  return Object.hasOwn(Date, 'clock') || Object.hasOwn(Date, 'isMock')
}

/** A sleeping caller reads the wall clock again after this time, because the clock may have been stepped. */
const LONGEST_SLEEP_MS = 60_000

/** The wall clock and real timers, or what stands in for them in a test. */
interface WallTime {
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
