import { build, type Histogram } from 'hdr-histogram-js'

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
