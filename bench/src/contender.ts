import type { Job } from './job.js'

/** A limiter under measurement: called as its documentation recommends, and awaited only where its interface demands it. */
export interface Contender {
  /** The answer, or a promise of it where `awaited`. */
  take(key: string): unknown
  /** Whether an answer let the request pass. A rejected promise is a denial. */
  passed(answer: unknown): boolean
  readonly awaited: boolean
  /** Bytes that it says it holds, where it can say. */
  memoryBytes?(): number
}

/** Makes a contender for a job. Each process makes one, so that no call site has seen another. */
export type ContenderFactory = (job: Job) => Contender | Promise<Contender>
