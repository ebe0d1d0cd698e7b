import { type Clock, unheldClock } from '../time/clock.js'
import type { AbortWatch } from '../waiting/abort-watch.js'
import { Alarm, type Alert } from '../waiting/alarm.js'

/** The timers of all queues. Timers of waiting requests keep the process alive; those that free places or renew permits do not. */
export class Timers {
  private readonly alarm: Alarm
  private readonly backgroundAlarm: Alarm

  /** @param onFailure called with what the clock threw. */
  constructor(clock: Clock, onFailure: (error: unknown) => void) {
    this.alarm = new Alarm(clock, onFailure)
    this.backgroundAlarm = new Alarm(unheldClock(clock), onFailure)
  }

  wakeAt(alert: Alert, ms: number): void {
    // A reading has whole microseconds: rounded up, so that it never rings early.
    this.alarm.set(alert, Math.ceil(ms * 1000), 0)
  }

  cancelWake(alert: Alert): void {
    this.alarm.clear(alert)
  }

  /** Calls `fn` after `ms` milliseconds, unless the returned function cancels it. */
  after(ms: number, fn: () => void): () => void {
    return set(this.alarm, ms, fn)
  }

  /** The same without keeping the process alive. */
  background(ms: number, fn: () => void): () => void {
    return set(this.backgroundAlarm, ms, fn)
  }
}

function set(alarm: Alarm, ms: number, fn: () => void): () => void {
  const alert: Alert = { dueUs: 0, order: 0, place: -1, ring: fn }
  alarm.set(alert, alarm.inUs(ms), 0)
  return () => alarm.clear(alert)
}

/** Pauses between two attempts, outside of queues. */
export class Pauses {
  private readonly timers: Timers
  private readonly aborts: AbortWatch
  private readonly ends = new Set<() => void>()

  constructor(timers: Timers, aborts: AbortWatch) {
    this.timers = timers
    this.aborts = aborts
  }

  /** Resolves after `ms` milliseconds. Rejects with the signal's reason, or with what `closed` returns. */
  pause(ms: number, signal: AbortSignal | undefined, closed: () => unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const end = (settle: () => void) => () => {
        this.ends.delete(close)
        unset()
        unwatch?.()
        settle()
      }
      const close = end(() => reject(closed()))
      const unset = this.timers.after(ms, end(resolve))
      const aborted = end(() => reject(signal?.reason))
      const unwatch = signal && this.aborts.add(signal, aborted)
      this.ends.add(close)
    })
  }

  close(): void {
    for (const end of [...this.ends]) end()
  }
}
