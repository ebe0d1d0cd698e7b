import { availableParallelism, cpus, loadavg } from 'node:os'
import type { Histogram } from 'hdr-histogram-js'
import { LoadInterval } from './load-interval.js'
import type { LoadPlan } from './load-plan.js'

const PERCENTILES = { p50: 50, p90: 90, p99: 99, p999: 99.9, p9999: 99.99 } as const

/** Milliseconds. */
export type Percentiles = Readonly<Record<keyof typeof PERCENTILES | 'mean' | 'max', number>>

/** One second of a run. */
export interface LoadSecond {
  /** From the start of the run. */
  readonly second: number
  readonly sent: number
  readonly allowed: number
  readonly denied: number
  readonly errors: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** What a run measured, as `--json` prints it. */
export interface LoadResult {
  readonly target: string
  readonly seed: number
  readonly processes: number
  readonly loop: LoadPlan['loop']
  readonly keys: LoadPlan['keys']
  /** From the start to the last answer, in seconds. */
  readonly seconds: number
  readonly sent: number
  readonly allowed: number
  readonly denied: number
  readonly errors: number
  /** Requests that were due and have no answer. They count in the latencies with the time until the end of the run. */
  readonly unanswered: number
  /** Answers a second. */
  readonly perSecond: number
  /** From the intended start to the answer. */
  readonly latencyMs: Percentiles
  /** From the moment of sending to the answer. */
  readonly serviceMs: Percentiles
  readonly errorTexts: Readonly<Record<string, number>>
  readonly timeline: readonly LoadSecond[]
  /** Points of the distribution: a share of all requests, and the latency that it stayed within. */
  readonly distribution: readonly { readonly share: number; readonly latencyMs: number }[]
}

/** Adds up the seconds of all processes. */
export class LoadTotals {
  readonly total = new LoadInterval()
  /** Of the second that all processes are in. */
  readonly #bySecond = new Map<number, { interval: LoadInterval; reports: number }>()
  readonly timeline: LoadSecond[] = []
  readonly #processes: number

  constructor(processes: number) {
    this.#processes = processes
  }

  /** Adds the second of one process; returns it when all processes have reported it. */
  add(second: number, interval: LoadInterval): LoadSecond | undefined {
    this.total.add(interval)
    const held = this.#bySecond.get(second) ?? { interval: new LoadInterval(), reports: 0 }
    held.interval.add(interval)
    held.reports++
    this.#bySecond.set(second, held)
    return held.reports < this.#processes ? undefined : this.#close(second)
  }

  result(plan: LoadPlan, seconds: number, errorTexts: ReadonlyMap<string, number>): LoadResult {
    for (const second of [...this.#bySecond.keys()].sort((a, b) => a - b)) this.#close(second)
    this.timeline.sort((a, b) => a.second - b.second)
    const { sent, allowed, denied, errors, unanswered, answered, latency, service } = this.total
    return {
      target: plan.target.url,
      seed: plan.seed,
      processes: plan.processes,
      loop: plan.loop,
      keys: plan.keys,
      seconds: round(seconds),
      sent,
      allowed,
      denied,
      errors,
      unanswered,
      perSecond: round(answered / seconds),
      latencyMs: percentilesOf(latency),
      serviceMs: percentilesOf(service),
      errorTexts: Object.fromEntries(errorTexts),
      timeline: this.timeline,
      distribution: distributionOf(latency),
    }
  }

  #close(second: number): LoadSecond {
    const { interval } = this.#bySecond.get(second) ?? { interval: new LoadInterval() }
    this.#bySecond.delete(second)
    const { sent, allowed, denied, errors, latency } = interval
    const closed = { second, sent, allowed, denied, errors, p50Ms: atPercentile(latency, 50), p99Ms: atPercentile(latency, 99) }
    this.timeline.push(closed)
    return closed
  }
}

function percentilesOf(histogram: Histogram): Percentiles {
  const percentiles = Object.entries(PERCENTILES).map(([name, percentile]) => [name, atPercentile(histogram, percentile)])
  const isEmpty = histogram.totalCount === 0
  return {
    ...Object.fromEntries(percentiles),
    mean: isEmpty ? 0 : round(histogram.mean / 1_000),
    max: isEmpty ? 0 : round(histogram.maxValue / 1_000),
  }
}

function atPercentile(histogram: Histogram, percentile: number): number {
  return histogram.totalCount === 0 ? 0 : round(histogram.getValueAtPercentile(percentile) / 1_000)
}

/** Five points for each further nine. */
function distributionOf(histogram: Histogram): { share: number; latencyMs: number }[] {
  const points: { share: number; latencyMs: number }[] = []
  for (let i = 0; i <= 5 * Math.log10(Math.max(1, histogram.totalCount)); i++) {
    const share = 1 - 10 ** (-i / 5)
    points.push({ share, latencyMs: atPercentile(histogram, share * 100) })
  }
  return points
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000
}

/** The machine and how busy it is, such as `Xeon, 2 cores, Node v20.20.2, load average 0.4`. */
export function machineText(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  return `${model}, ${availableParallelism()} cores, Node ${process.version}, load average ${(loadavg()[0] ?? 0).toFixed(1)}`
}

/** The same with the day, as it stands under a table. */
export function measuredWhere(): string {
  return `${machineText()}, ${new Date().toISOString().slice(0, 10)}`
}
