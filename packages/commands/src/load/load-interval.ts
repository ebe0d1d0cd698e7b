import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js'

const LONGEST_US = 3_600_000_000

/** Latencies in microseconds, to three digits, up to an hour. */
function latencyHistogram(): Histogram {
  return build({ lowestDiscernibleValue: 1, highestTrackableValue: LONGEST_US, numberOfSignificantValueDigits: 3 })
}

/** Records a latency; one outside of the range counts at its end. */
export function recordMs(histogram: Histogram, ms: number): void {
  histogram.recordValue(Math.min(LONGEST_US, Math.max(1, Math.round(ms * 1_000))))
}

/** What ended in one second of a run, counted from its start. Intervals of processes, and of seconds, add up. */
export class LoadInterval {
  sent = 0
  allowed = 0
  denied = 0
  errors = 0
  /** Requests that were due and have no answer at the end of the run; their latency so far is counted. */
  unanswered = 0
  /** From the intended start to the answer. */
  readonly latency = latencyHistogram()
  /** From the moment of sending to the answer. */
  readonly service = latencyHistogram()

  get answered(): number {
    return this.allowed + this.denied + this.errors
  }

  add(other: LoadInterval): void {
    this.sent += other.sent
    this.allowed += other.allowed
    this.denied += other.denied
    this.errors += other.errors
    this.unanswered += other.unanswered
    this.latency.add(other.latency)
    this.service.add(other.service)
  }
}

/** An interval as text for another process. */
export interface SentInterval {
  readonly counts: readonly [sent: number, allowed: number, denied: number, errors: number, unanswered: number]
  readonly latency: string
  readonly service: string
}

export function sentInterval({ sent, allowed, denied, errors, unanswered, latency, service }: LoadInterval): SentInterval {
  return {
    counts: [sent, allowed, denied, errors, unanswered],
    latency: encodeIntoCompressedBase64(latency),
    service: encodeIntoCompressedBase64(service),
  }
}

export function receivedInterval({ counts, latency, service }: SentInterval): LoadInterval {
  const interval = new LoadInterval()
  ;[interval.sent, interval.allowed, interval.denied, interval.errors, interval.unanswered] = counts
  interval.latency.add(decodeFromCompressedBase64(latency))
  interval.service.add(decodeFromCompressedBase64(service))
  return interval
}
