import type { Key } from '../limiter.js'
import type { Due } from '../waiting/due-heap.js'
import type { RunningJob, RunSettings } from './queue-options.js'

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
export type JobParts = Omit<Job, 'turn' | 'laneDrop' | 'drop' | 'unwatch'>

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
