import type { Decision } from 'sluicegate'
import type { FleetLoad, LoadedTake, RateSpec } from 'sluicegate-testkit'

/** One take of a load, in milliseconds of one clock. */
export interface RecordedTake extends Pick<LoadedTake, 'key' | 'askedMs' | 'answeredMs'> {
  readonly decision: Pick<Decision, 'allowed' | 'source'>
}

/** A load whose answers are recorded: in this process, or gathered from several. */
export interface RecordedLoad extends Pick<FleetLoad, 'errors' | 'slowestMs' | 'open'> {
  readonly takes: readonly RecordedTake[]
  since(ms: number): readonly RecordedTake[]
  stop(): Promise<void>
}

/** One limiter, or several that share a budget, under load. */
export interface Subject {
  readonly name: string
  /** What may pass while no server fails. */
  readonly bound: RateSpec
  /** Limiters, each with its own share in an outage. */
  readonly processes: number
  readonly limiter: { stats(): unknown }
  readonly load: RecordedLoad
  /** Called in each failover, when a primary was killed and none has its place. */
  primaryGone?(): void
}
