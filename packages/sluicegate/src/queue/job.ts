import { checkActualCost } from '../arguments.js'
import { ignore, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { isPermit, keptPermit } from '../decision/permit.js'
import type { Reservation } from '../decision/reservation.js'
import { droppable } from '../dropped-promise.js'
import { PolicyError, StoreError } from '../errors.js'
import { closeQuietly, isHold, keptHold } from '../holds/metered.js'
import type { Key } from '../limiter.js'
import type { After } from '../time/clock.js'
import type { AbortWatch } from '../waiting/abort-watch.js'
import type { Due } from '../waiting/due-heap.js'
import type { QueueLimiter, RunningJob, RunSettings } from './queue-options.js'
import { QueueError } from './work-queue.js'

/** A job's place in one of the heaps that it stands in. */
export interface Rank extends Due {
  readonly job: Job
}

/** Work that waits for a token, and then runs. */
export interface Job {
  readonly key: Key
  readonly settings: RunSettings
  readonly order: number
  /** In its lane, the next to start first. */
  readonly turn: Rank
  /** In its lane and in the whole queue, the first to be dropped first. Undefined where nothing is ever dropped. */
  readonly laneDrop: Rank | undefined
  readonly drop: Rank | undefined
  /** On the queue's clock. */
  readonly deadlineMs: number
  /** Ends the timers and listeners of a waiting job. */
  unwatch: () => void
  readonly fn: (job: RunningJob) => unknown
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: unknown) => void
}

/** What a job is made of. */
type JobParts = Omit<Job, 'turn' | 'laneDrop' | 'drop' | 'unwatch'>

export function newJob(parts: JobParts, canBeDropped: boolean): Job {
  const { priority } = parts.settings
  // One at a time, as each refers to the job.
  const job = { ...parts, unwatch: (): void => {} } as { -readonly [Field in keyof Job]: Job[Field] }
  job.turn = rank(job, -priority)
  job.laneDrop = canBeDropped ? rank(job, priority) : undefined
  job.drop = canBeDropped ? rank(job, priority) : undefined
  return job
}

function rank(job: Job, value: number): Rank {
  return { job, dueUs: value, order: job.order, place: -1 }
}

/** What a running job needs of its queue. */
export interface RunningHost {
  readonly limiter: QueueLimiter
  readonly aborts: AbortWatch
  readonly after: After
  /** {@link after}, with timers that do not keep the process alive. */
  readonly afterUnheld: After
  /** The job's place is free again. Called once. */
  ended(job: Job, isSuccess: boolean): void
}

/**
 * Runs a job that was admitted.
 *
 * A time-out rejects the job and frees its place at once. An abort by the caller rejects the job at once, too, but its place stays taken until its
 * function has ended: the work may still be going on.
 */
export function runAdmitted(job: Job, reservation: Reservation<When>, host: RunningHost): void {
  const { decision } = reservation
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
    host.ended(job, isSuccess)
  }
  try {
    letGo = held(job, decision, host)
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
  const hold = isHold(decision) ? decision : undefined
  const context: RunningJob = { signal: controller.signal, decision, hold, settle: settling(reservation) }
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
function held({ key, settings }: Job, decision: Decision, { limiter, afterUnheld }: RunningHost): () => void {
  if (typeof settings.cost !== 'number' && isHold(decision)) {
    const unkeep = keptHold(decision, settings.cost, afterUnheld)
    return () => {
      unkeep()
      closeQuietly(decision)
    }
  }
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

function settling(reservation: Reservation<When>): RunningJob['settle'] {
  let isSettled = false
  const settle: RunningJob['settle'] = async (actualCost) => {
    checkActualCost(actualCost)
    if (isPermit(reservation.decision)) {
      throw new PolicyError('OPTION_INVALID', 'actualCost', actualCost, 'is not for permits: they count places, not tokens')
    }
    if (isSettled) return
    isSettled = true
    try {
      await reservation.settle(actualCost)
    } catch (error) {
      // Of a closed limiter nothing is left that could come back.
      if (!(error instanceof StoreError && error.code === 'CLOSED')) throw error
    }
  }
  return (actualCost) => droppable(settle(actualCost), 'settle', () => reservation.decision.policy)
}
