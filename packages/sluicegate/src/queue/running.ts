import { checkActualCost } from '../arguments.js'
import { ignore } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { type After, isPermit, keptPermit } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../limiter.js'
import type { AbortWatch } from '../waiting/abort-watch.js'
import type { Job } from './job.js'
import { QueueError } from './queue-error.js'
import type { QueueLimiter, RunningJob } from './queue-options.js'

/** What a running job needs of its queue. */
export interface RunningHost {
  readonly limiter: QueueLimiter
  readonly aborts: AbortWatch
  readonly after: After
  /** {@link after}, with timers that do not keep the process alive. */
  readonly afterUnheld: After
  /** The job's place is free again. Called once. */
  ended(isSuccess: boolean): void
}

/**
 * Runs a job that was admitted.
 *
 * A time-out rejects the job and frees its place at once. An abort by the caller rejects the job at once, too, but its place stays taken until its
 * function has ended: the work may still be going on.
 */
export function runAdmitted(job: Job, decision: Decision, host: RunningHost): void {
  const { signal, timeoutMs } = job.settings
  const controller = new AbortController()
  let letGo = (): void => {}
  let untime: (() => void) | undefined
  let unwatch: (() => void) | undefined
  let isOver = false
  const end = (isSuccess: boolean): void => {
    if (isOver) return
    isOver = true
    untime?.()
    unwatch?.()
    letGo()
    host.ended(isSuccess)
  }
  try {
    letGo = held(job.key, decision, host)
    if (timeoutMs !== Number.POSITIVE_INFINITY) {
      untime = host.after(timeoutMs, () => {
        const error = new QueueError('TIMEOUT', `still running after ${timeoutMs} ms`, job.key, decision)
        job.reject(error)
        controller.abort(error)
        end(false)
      })
    }
  } catch (error) {
    // Of a clock that fails: the job does not run, and its place is free.
    job.reject(error)
    end(false)
    return
  }
  unwatch =
    signal &&
    host.aborts.add(signal, () => {
      job.reject(signal.reason)
      controller.abort(signal.reason)
    })
  const context: RunningJob = { signal: controller.signal, decision, settle: settling(job, decision, host.limiter) }
  // A function that throws rejects like one whose promise does.
  new Promise((resolve) => resolve(job.fn(context))).then(
    (value) => {
      job.resolve(value)
      end(true)
    },
    (error) => {
      job.reject(error)
      end(false)
    },
  )
}

/** Keeps what the decision holds from running out, until the returned function is called. */
function held(key: Key, decision: Decision, { limiter, afterUnheld }: RunningHost): () => void {
  if (!isPermit(decision)) return () => {}
  const unkeep = keptPermit(decision, limiter, key, afterUnheld)
  return () => {
    unkeep()
    try {
      ignore(decision.release())
    } catch {
      // The limiter is closed or out of reach: the place comes back after its ttl.
    }
  }
}

function settling({ key, settings }: Job, decision: Decision, limiter: QueueLimiter): RunningJob['settle'] {
  let isSettled = false
  return async (actualCost) => {
    checkActualCost(actualCost)
    if (isPermit(decision)) {
      throw new PolicyError('OPTION_INVALID', 'actualCost', actualCost, 'is not for permits: they count places, not tokens')
    }
    if (isSettled || decision.wouldDeny) return
    isSettled = true
    const rest = settings.cost - actualCost
    if (rest > 0) await limiter.refund(key, rest)
    else if (rest < 0) await limiter.penalize(key, -rest)
  }
}
