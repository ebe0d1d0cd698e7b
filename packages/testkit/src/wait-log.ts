import type { Decision, Key, ManualClock, WaitOptions } from 'sluicegate'
import { manualClock } from '../../sluicegate/dist/time/clock.js'
import { Waiting } from '../../sluicegate/dist/waiting/waiting.js'
import { BookingBucket } from './booking-bucket.js'

/** Waits over a bucket of ten tokens, one a millisecond. */
export function loggedWaiting({ maxWaiters = 100_000 } = {}) {
  const clock = manualClock(1_790_000_000_000)
  const bucket = new BookingBucket({ limit: 1000, windowMs: 1000, burst: 10 }, clock)
  const waiting = new Waiting<Decision>({ service: bucket, clock, maxWaiters })
  return { clock, bucket, waiting, log: new WaitLog(waiting, clock) }
}

/** Calls `wait` on a manual clock and writes down when and how each ends. */
export class WaitLog {
  /** As `a passed at 3`, `b denied for 5 at 0`, `c rejected with CLOSED at 1`: milliseconds since the log was begun. */
  readonly lines: string[] = []
  private readonly waiting: { wait(key: Key, options?: WaitOptions): Promise<Decision> }
  private readonly clock: ManualClock
  private readonly startMs: number

  constructor(waiting: WaitLog['waiting'], clock: ManualClock) {
    this.waiting = waiting
    this.clock = clock
    this.startMs = clock.nowMs()
  }

  /** Settles when the wait does, and never rejects. */
  async wait(name: string, options?: WaitOptions, key: Key = 'k'): Promise<void> {
    this.lines.push(`${name} ${await this.end(key, options)} at ${Number((this.clock.nowMs() - this.startMs).toFixed(3))}`)
  }

  /** In steps of a millisecond, so that each promise settles at its time. */
  async pass(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) {
      this.clock.advance(1)
      await settled()
    }
  }

  private async end(key: Key, options?: WaitOptions): Promise<string> {
    try {
      const { allowed, retryAfterMs } = await this.waiting.wait(key, options)
      return allowed ? 'passed' : `denied for ${retryAfterMs}`
    } catch (reason) {
      return `rejected with ${reason instanceof Error ? ((reason as { code?: unknown }).code ?? reason.message) : reason}`
    }
  }
}

/** Lets every promise that can settle now do so. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}
