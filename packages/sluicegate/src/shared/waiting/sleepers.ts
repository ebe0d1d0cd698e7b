import type { Clock } from '../../time/clock.js'
import { AbortWatch } from '../../waiting/abort-watch.js'
import { Alarm, type Alert } from '../../waiting/alarm.js'

interface Sleeper extends Alert {
  readonly wakeUp: () => void
  readonly giveUp: (reason: unknown) => void
}

/** Sleeping callers on one timer, each until its time, until it is woken, or until its signal aborts. */
export class Sleepers {
  private readonly clock: Clock
  private readonly alarm: Alarm
  private readonly aborts = new AbortWatch()
  private readonly asleep = new Set<Sleeper>()
  private readonly named = new Map<object, Sleeper>()
  private order = 0
  private closed: { readonly reason: unknown } | undefined

  constructor(clock: Clock) {
    this.clock = clock
    this.alarm = new Alarm(clock, (error) => this.rejectAll(error))
  }

  nowMs(): number {
    return this.clock.nowMs()
  }

  /** The reading of the clock in `ms`, in microseconds. */
  inUs(ms: number): number {
    return this.alarm.inUs(ms)
  }

  /** Resolves after `ms`, or when `name` is woken; rejects with the signal's reason, or that of {@link close}. */
  sleep(ms: number, signal?: AbortSignal, name?: object): Promise<void> {
    return this.sleepUntil(this.inUs(ms), signal, name)
  }

  /** The same until a reading of the clock. Of waits until the same reading, the first to come wakes first. */
  sleepUntil(dueUs: number, signal?: AbortSignal, name?: object): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.closed !== undefined) return reject(this.closed.reason)
      if (signal?.aborted) return reject(signal.reason)
      const end = (settle: () => void) => () => {
        if (!this.asleep.delete(sleeper)) return
        if (name !== undefined && this.named.get(name) === sleeper) this.named.delete(name)
        this.alarm.clear(sleeper)
        unwatch?.()
        settle()
      }
      const sleeper: Sleeper = {
        dueUs: 0,
        order: 0,
        place: -1,
        ring: () => sleeper.wakeUp(),
        wakeUp: end(resolve),
        giveUp: (reason) => end(() => reject(reason))(),
      }
      const unwatch = signal && this.aborts.add(signal, () => sleeper.giveUp(signal.reason))
      this.asleep.add(sleeper)
      if (name !== undefined) this.named.set(name, sleeper)
      this.alarm.set(sleeper, dueUs, this.order++)
    })
  }

  wake(name: object | undefined): void {
    if (name !== undefined) this.named.get(name)?.wakeUp()
  }

  /** Settles as `promise` does, or rejects with the signal's reason if that aborts first; a later value goes to `late`. */
  unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined, late: (value: Value) => void): Promise<Value> {
    if (signal === undefined) return promise
    return new Promise((resolve, reject) => {
      let isAborted = false
      const unwatch = this.aborts.add(signal, () => {
        isAborted = true
        reject(signal.reason)
      })
      promise.then(
        (value) => {
          unwatch()
          if (isAborted) late(value)
          else resolve(value)
        },
        (error) => {
          unwatch()
          reject(error)
        },
      )
    })
  }

  /** Rejects all sleepers, the latest first, and all later ones. */
  close(reason: unknown): void {
    this.closed = { reason }
    this.rejectAll(reason)
  }

  private rejectAll(reason: unknown): void {
    for (const sleeper of [...this.asleep].reverse()) sleeper.giveUp(reason)
  }
}
