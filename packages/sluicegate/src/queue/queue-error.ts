import type { Decision } from '../decision/decision.js'
import type { Key } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'

/**
 * Why a job did not run, or did not finish. Each code is explained in `docs/queue.md`.
 *
 * - `QUEUE_FULL`: the queue was full and refused this job.
 * - `DROPPED`: the queue was full and dropped this job for a newer one.
 * - `WAIT_TOO_LONG`: the job did not start within `maxWaitMs`.
 * - `TIMEOUT`: the job ran longer than `timeoutMs`.
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
