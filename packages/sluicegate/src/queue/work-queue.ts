import type { Decision } from '../decision/decision.js'
import type { Key, KeysByName } from '../key.js'
import { onceInProcess } from '../once-in-process.js'
import type { RunningJob, RunOptions, WrapOptions } from './queue-options.js'

/** How a queue stands, and counters since it was made. */
export interface QueueStats {
  /** Jobs that wait. */
  readonly queued: number
  /** Jobs that run. */
  readonly running: number
  /** Keys with waiting jobs. */
  readonly keys: number
  /** Jobs whose function succeeded. */
  readonly completed: number
  /** Jobs whose function failed, or ran longer than `timeout`. */
  readonly failed: number
  /** Jobs that never started: refused, dropped, too late, aborted, cleared or closed. */
  readonly rejected: number
}

/** Work that starts as a limiter admits it, see {@link createQueue}. */
export interface WorkQueue {
  /**
   * Runs `fn` as soon as the limiter admits `cost` tokens for `key` and a place is free; resolves with what it returns and rejects with what it throws.
   *
   * Rejects with {@link QueueError} when the job does not start or does not end in time, with the signal's reason on abort, and with
   * `PolicyError` on misuse.
   */
  run<Result>(key: Key | KeysByName, fn: (job: RunningJob) => Result, options?: RunOptions): Promise<Awaited<Result>>
  /** The same function, each call of which goes through {@link run}. */
  wrap<This, Args extends unknown[], Result>(
    fn: (this: This, ...args: Args) => Result,
    options?: WrapOptions<Args, Result>,
  ): (this: This, ...args: Args) => Promise<Awaited<Result>>
  /** Starts no more jobs until {@link resume}; running ones go on. */
  pause(): void
  resume(): void
  readonly isPaused: boolean
  /** Rejects all waiting jobs with `CLEARED`, and returns how many they were. */
  clear(): number
  /** Resolves when no job waits: at once if none does. */
  onEmpty(): Promise<void>
  /** Resolves when no job waits and none runs: at once if so. */
  onIdle(): Promise<void>
  stats(): QueueStats
  /** Rejects waiting jobs, and all later ones, with `CLOSED`. Running jobs go on. The limiter stays open. */
  close(): void
  [Symbol.dispose](): void
}

/** What a limiter offers of its queue. */
export interface QueueVerbs extends Pick<WorkQueue, 'run' | 'wrap'> {
  /** The queue behind `run` and `wrap`, whose bounds are the defaults: {@link createQueue} makes one with others. */
  readonly queue: WorkQueue
}

/**
 * Why a job did not run, or did not finish. Each code is explained in `docs/queue.md`.
 *
 * - `QUEUE_FULL`: the queue was full and refused this job.
 * - `DROPPED`: the queue was full and dropped this job for a newer one.
 * - `WAIT_TOO_LONG`: the job did not start within `maxWait`.
 * - `TIMEOUT`: the job ran longer than `timeout`.
 * - `IMPOSSIBLE`: the cost is above what the policy can ever admit.
 * - `DENIED`: the limiter never admits this key, for example a key on its deny list.
 * - `OUTAGE`: the limiter cannot reach its store, and its option `outage` denies meanwhile.
 * - `CLEARED`: `queue.clear()` was called before the job started.
 * - `CLOSED`: the queue or its limiter was closed before the job started.
 */
export type QueueErrorCode =
  | 'QUEUE_FULL'
  | 'DROPPED'
  | 'WAIT_TOO_LONG'
  | 'TIMEOUT'
  | 'IMPOSSIBLE'
  | 'DENIED'
  | 'OUTAGE'
  | 'CLEARED'
  | 'CLOSED'

/** A job that did not run, or did not finish in time. Errors of the job itself are passed on as they are. */
class QueueError extends Error {
  override readonly name = 'QueueError'
  readonly code: QueueErrorCode
  /** The key of the job. */
  readonly key: Key
  /** The decision of the limiter, where one led to this. */
  readonly decision: Decision | undefined

  constructor(code: QueueErrorCode, message: string, key: Key, decision?: Decision) {
    super(message)
    this.code = code
    this.key = key
    this.decision = decision
  }
}

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OnceQueueError: typeof QueueError = /* @__PURE__ */ onceInProcess('QueueError', () => QueueError)
type OnceQueueError = QueueError

export { OnceQueueError as QueueError }
