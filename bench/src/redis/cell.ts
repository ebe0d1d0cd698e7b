import { build, type Histogram } from 'hdr-histogram-js'
import type { FleetContenderName } from './contenders.js'
import type { Topology } from './servers.js'

/** All callers ask about one key, or each about its own. */
export type Shape = 'hot_key' | 'per_user'
export const SHAPES: readonly Shape[] = ['per_user', 'hot_key']

export const CALLERS = [1, 16, 64, 256] as const
export const MOST_CALLERS = 256

/** One thing to measure. */
export interface Cell {
  readonly contender: FleetContenderName
  readonly topology: Topology
  readonly shape: Shape
  readonly callers: number
  /** Questions a second, from all callers together; 0 for each its next as soon as the last was answered. */
  readonly pace: number
}

/** What one run of a cell found. */
export interface FleetRun {
  readonly startedAt: string
  readonly takes: number
  readonly admitted: number
  readonly elapsedMs: number
  /** Commands that were sent to the primaries. */
  readonly calls: number
  /** What the primaries spent on them, microseconds. */
  readonly serverUs: number
  /** Of what all keys together were worth in this time: the burst, and the rate. */
  readonly budget: number
  /** The same with as much less as a lease takes off the burst. */
  readonly leasedBudget: number
  /** Tokens beyond what a key was worth, summed over the keys. */
  readonly overGrant: number
  /** Decisions that were made without the servers because no answer came in time: on a machine at rest none. */
  readonly withoutStore: number
  readonly all: LatencyFigures | undefined
  readonly admits: LatencyFigures | undefined
  readonly denials: LatencyFigures | undefined
}

/** All runs of a cell so far. */
export interface CellResult {
  readonly cell: Cell
  readonly runs: readonly FleetRun[]
}

/** The cell as the name of a file. */
export function cellName({ contender, topology, shape, callers, pace }: Cell): string {
  const who = contender.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return [topology, shape, callers, ...(pace > 0 ? [`paced-${pace}`] : []), who].join('.')
}

/** How long decisions took, in nanoseconds. */
export interface LatencyFigures {
  /** Decisions that were timed. */
  readonly timed: number
  readonly meanNs: number
  readonly p50Ns: number
  readonly p99Ns: number
  readonly p999Ns: number
  readonly maxNs: number
}

const LONGEST_NS = 120e9

/** A high dynamic range histogram of single decisions. */
export class Latency {
  private readonly histogram: Histogram = build({
    highestTrackableValue: LONGEST_NS,
    numberOfSignificantValueDigits: 3,
  })

  record(ms: number): void {
    this.histogram.recordValue(Math.min(LONGEST_NS, Math.max(1, Math.round(ms * 1e6))))
  }

  /** Takes in what another recorded. */
  add(other: Latency): void {
    this.histogram.add(other.histogram)
  }

  /** Undefined when nothing was recorded. */
  figures(): LatencyFigures | undefined {
    const { histogram } = this
    if (histogram.totalCount === 0) return undefined
    const [p50Ns, p99Ns, p999Ns] = [50, 99, 99.9].map((percentile) => histogram.getValueAtPercentile(percentile)) as [
      number,
      number,
      number,
    ]
    return { timed: histogram.totalCount, meanNs: histogram.mean, p50Ns, p99Ns, p999Ns, maxNs: histogram.maxValue }
  }
}
