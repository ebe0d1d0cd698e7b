import { Latency, type LatencyFigures } from './latency.js'

/** What a crowd of callers did in one run. */
export interface Stint {
  readonly takes: number
  /** Of each key. */
  readonly admitted: readonly number[]
  /** From the first question to the last answer. */
  readonly elapsedMs: number
  readonly all: LatencyFigures | undefined
  readonly admits: LatencyFigures | undefined
  readonly denials: LatencyFigures | undefined
}

/** Keeps count of decisions while they are made. */
export class Tally {
  takes = 0
  private readonly admitted: number[]
  private readonly admits = new Latency()
  private readonly denials = new Latency()
  private readonly fromMs = performance.now()

  constructor(keys: number) {
    this.admitted = new Array<number>(keys).fill(0)
  }

  /** @param ms how long it took, where it was timed. */
  count(key: number, isAdmitted: boolean, ms: number | undefined): void {
    this.takes++
    if (isAdmitted) (this.admitted[key] as number)++
    if (ms !== undefined) (isAdmitted ? this.admits : this.denials).record(ms)
  }

  stint(): Stint {
    const elapsedMs = performance.now() - this.fromMs
    const all = new Latency()
    all.add(this.admits)
    all.add(this.denials)
    const { takes, admitted } = this
    return { takes, admitted, elapsedMs, all: all.figures(), admits: this.admits.figures(), denials: this.denials.figures() }
  }
}
