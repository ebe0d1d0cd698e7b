import type { AbortWatch } from '../waiting/abort-watch.js'
import type { Timers } from './timers.js'

/** Those who pause between two attempts, in no line. */
export class Pauses {
  private readonly timers: Timers
  private readonly aborts: AbortWatch
  private readonly ends = new Set<() => void>()

  constructor(timers: Timers, aborts: AbortWatch) {
    this.timers = timers
    this.aborts = aborts
  }

  /** Resolves in so many milliseconds. Rejects when the signal aborts, and with `closed` when all is closed. */
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
