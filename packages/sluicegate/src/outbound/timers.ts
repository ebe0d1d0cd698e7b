import { type Clock, unheldClock } from '../clock.js'
import { Alarm, type Alert } from '../waiting/alarm.js'

/** The timers of all lines. Those of whoever waits keep the process alive, those that only give places away, or keep them, do not. */
export class Timers {
  private readonly alarm: Alarm
  private readonly background: Alarm

  /** @param onFailure called with what the clock threw. */
  constructor(clock: Clock, onFailure: (error: unknown) => void) {
    this.alarm = new Alarm(clock, onFailure)
    this.background = new Alarm(unheldClock(clock), onFailure)
  }

  wakeAt(alert: Alert, ms: number): void {
    // A reading is whole microseconds: never before the time.
    this.alarm.set(alert, Math.ceil(ms * 1000), 0)
  }

  sleepOn(alert: Alert): void {
    this.alarm.clear(alert)
  }

  /** Calls `fn` in so many milliseconds, unless the returned function was called before. */
  after(ms: number, fn: () => void): () => void {
    return set(this.alarm, ms, fn)
  }

  /** The same where nobody waits for it. */
  aside(ms: number, fn: () => void): () => void {
    return set(this.background, ms, fn)
  }
}

function set(alarm: Alarm, ms: number, fn: () => void): () => void {
  const alert: Alert = { dueUs: 0, order: 0, place: -1, ring: fn }
  alarm.set(alert, alarm.inUs(ms), 0)
  return () => alarm.clear(alert)
}
