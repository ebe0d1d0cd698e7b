import type { Decision, Key, ManualClock, Policy, WaitOptions } from 'sluicegate'
import { manualClock } from '../../sluicegate/dist/time/clock.js'
import { Waiting } from '../../sluicegate/dist/waiting/waiting.js'
import { BookingBucket } from './booking-bucket.js'
import { microtasks } from './turns.js'

/** What a worker of a crew is started with. */
export interface WorkerStart {
  /** What `limiter.handle()` gave. */
  readonly handle: unknown
  /** The function that attaches to the handle, and its module's address; default `attachLimiter`. */
  readonly attach?: { readonly module: string; readonly name: string }
  /** Microseconds since the Unix epoch, for a limiter whose clock is the crew's own. */
  readonly clockUs?: BigInt64Array
  /** Microseconds by which every reading of that clock moves it on; default 0. */
  readonly stepUs?: number
}

/** A job as it is sent, and its answer as it comes back. */
export interface AskedJob {
  readonly number: number
  readonly job: WorkerJob
}

export interface GivenAnswer {
  readonly number: number
  readonly answer: unknown
}

/** What a worker can be asked to do with its end of the limiter. */
export type WorkerJob =
  | ({ readonly kind: 'attach' } & WorkerStart)
  /** `rounds` takes of `cost`, default 1, on each key in turn; answers how many passed, by key. */
  | { readonly kind: 'take'; readonly keys: readonly Key[]; readonly rounds: number; readonly cost?: number }
  /**
   * Takes on one key until `stop[0]` is set and a take was denied after that. Writes to `deniedUs[0]`, and notifies waiters there, when
   * the last one denied began; answers the readings of those that passed.
   */
  | {
      readonly kind: 'always-ask'
      readonly key: Key
      readonly cost: number
      readonly stop: Int32Array
      readonly deniedUs: BigInt64Array
    }
  /** Goes on until the thread is ended. */
  | ({ readonly kind: 'for-ever' } & Life)
  /** As many lives, each with an end of the limiter of its own, cut off wherever it is after a millisecond. */
  | ({ readonly kind: 'lives'; readonly lives: number } & Life)
  /** Takes permits on one key and gives them back, a few at a time; counts those held by all in `inFlight[0]`, and answers the most it saw. */
  | { readonly kind: 'hold'; readonly key: Key; readonly cost: number; readonly rounds: number; readonly inFlight: Int32Array }
  /** In each round puts the next of the policies in force and takes on the next key. */
  | {
      readonly kind: 'storm'
      readonly keys: readonly Key[]
      readonly cost: number
      readonly policies: readonly Policy[]
      readonly rounds: number
    }
  | { readonly kind: 'update'; readonly policy: Policy }
  /** Answers the decision and the policy in force. */
  | { readonly kind: 'look'; readonly key: Key }

/** Calls on any of the keys, one after another. */
export interface Life {
  readonly keys: readonly Key[]
  readonly cost: number
  readonly seed: number
  /** The calls at 0, the passed takes of key i at i + 1. */
  readonly counts: Int32Array
  /** Else any verb. */
  readonly takesOnly: boolean
}

/** What a storm of updates came to: the takes that passed, by key, and policies seen that no thread had made. */
export interface StormReport {
  readonly passed: readonly number[]
  readonly torn: readonly string[]
}

/** Waits over a bucket of ten tokens, one a millisecond. */
export function loggedWaiting({ maxWaiting = 100_000 } = {}) {
  const clock = manualClock(1_790_000_000_000)
  const bucket = new BookingBucket({ limit: 1000, windowMs: 1000, burst: 10 }, clock)
  const waiting = new Waiting<Decision>({ service: bucket, clock, maxWaiting })
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
  await microtasks(10)
}
