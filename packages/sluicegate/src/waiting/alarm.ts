import { has } from '../options/option-checks.js'
import { type Clock, preciseClock, type Ticker, tickerOf } from '../time/clock.js'
import { type Due, DueHeap } from './due-heap.js'

/** Timers stand still while the machine sleeps, clocks do not: the clock is read again after this time. */
const LONGEST_TIMER_MS = 60_000

/** Rung once the clock has reached `dueUs`, and no longer set then. It may set itself or others again. */
export interface Alert extends Due {
  ring(nowUs: number): void
}

/** An alert that calls `ring`. */
export function alertOf(ring: (nowUs: number) => void): Alert {
  return { dueUs: 0, order: 0, place: -1, ring }
}

/** Any number of alerts on one timer, that of the soonest. Without alerts there is no timer, and nothing keeps the process alive. */
export class Alarm {
  private readonly after: NonNullable<Clock['after']>
  private readonly clock: Clock
  private readonly ticker: Ticker
  private readonly alerts = new DueHeap<Alert>()
  private cancelTimer: (() => void) | undefined
  private timerUs = Number.POSITIVE_INFINITY
  private isRinging = false
  private isFailing = false
  private readonly onFailure: (error: unknown) => void

  /**
   * A clock without timers is read after the same span of real time.
   *
   * @param onFailure called with the error of the clock, after which alerts cannot ring: it has to clear all of them. Never within a call
   * to the alarm.
   */
  constructor(clock: Clock, onFailure: (error: unknown) => void) {
    this.clock = clock
    this.onFailure = onFailure
    this.ticker = tickerOf(clock)
    this.after = (has(clock, 'after') ? clock.after?.bind(clock) : undefined) ?? (preciseClock().after as NonNullable<Clock['after']>)
  }

  /** The clock's reading, whole microseconds. */
  nowUs(): number {
    return this.ticker.read()
  }

  /** Milliseconds until then, none when it is past. */
  leftMs(untilUs: number): number {
    return untilUs === Number.POSITIVE_INFINITY ? untilUs : Math.max(0, (untilUs - this.ticker.read()) / 1000)
  }

  /** The reading in `ms`: a whole number, as readings are, or a timer would be set again and again for the rest of a microsecond. */
  inUs(ms: number): number {
    return this.ticker.read() + Math.ceil(ms * 1000)
  }

  /** Sets an alert, or moves it. `order` decides among those of the same microsecond. */
  set(alert: Alert, dueUs: number, order: number): void {
    this.alerts.remove(alert)
    alert.dueUs = dueUs
    alert.order = order
    this.alerts.add(alert)
    if (!this.isRinging && dueUs < this.timerUs) this.arm()
  }

  clear(alert: Alert): void {
    this.alerts.remove(alert)
    if (!this.isRinging && this.alerts.first === undefined) this.arm()
  }

  private arm(): void {
    const { cancelTimer } = this
    this.cancelTimer = undefined
    this.timerUs = Number.POSITIVE_INFINITY
    try {
      cancelTimer?.()
      if (this.alerts.first !== undefined) this.armFor(this.alerts.first)
    } catch (error) {
      this.timerUs = Number.POSITIVE_INFINITY
      this.fail(error)
    }
  }

  private armFor(first: Alert): void {
    this.timerUs = first.dueUs
    // A coarse clock stands still until it is read again. The delay is from the clock's own fraction of a microsecond: from the reading, which
    // is rounded, a timer might come one too early or too late.
    this.ticker.read()
    const leftMs = first.dueUs / 1000 - this.clock.nowMs()
    this.cancelTimer = this.after(Math.max(0, Math.min(leftMs, LONGEST_TIMER_MS)), () => this.ring())
  }

  /** Reports an error, after which alerts cannot ring, but later: the caller that set an alert, or was rung, has not finished. */
  fail(error: unknown): void {
    if (this.isFailing) return
    this.isFailing = true
    queueMicrotask(() => {
      try {
        this.onFailure(error)
      } finally {
        this.isFailing = false
      }
    })
  }

  /** A timer that fires before the clock is there, or whose alert was cleared, is set again. */
  private ring(): void {
    this.isRinging = true
    this.cancelTimer = undefined
    try {
      const nowUs = this.ticker.read()
      for (let { first } = this.alerts; first !== undefined && first.dueUs <= nowUs; { first } = this.alerts) {
        this.alerts.remove(first)
        first.ring(nowUs)
      }
    } catch (error) {
      this.fail(error)
    } finally {
      this.isRinging = false
      this.arm()
    }
  }
}
