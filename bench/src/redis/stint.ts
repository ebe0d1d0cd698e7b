import { type Summary, summaryOf } from '../samples.js'
import type { CellResult, FleetRun } from './cell.js'
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

/** What can be said of a run, by the names of the columns. */
export const FIGURES = {
  /** Wall time over decisions, all callers together. */
  nsPerOp: ({ elapsedMs, takes }: FleetRun) => (elapsedMs * 1e6) / takes,
  opsPerS: ({ elapsedMs, takes }: FleetRun) => (takes / elapsedMs) * 1000,
  callsPerRequest: ({ calls, takes }: FleetRun) => calls / takes,
  callsPerAdmitted: ({ calls, admitted }: FleetRun) => calls / admitted,
  budgetPercent: ({ admitted, budget }: FleetRun) => (admitted / budget) * 100,
  leasedBudgetPercent: ({ admitted, leasedBudget }: FleetRun) => (admitted / leasedBudget) * 100,
  admittedPerS: ({ elapsedMs, admitted }: FleetRun) => (admitted / elapsedMs) * 1000,
  overGrant: ({ overGrant }: FleetRun) => overGrant,
  withoutStore: ({ withoutStore }: FleetRun) => withoutStore,
  serverUsPerCall: ({ serverUs, calls }: FleetRun) => serverUs / calls,
} as const satisfies Record<string, (run: FleetRun) => number>

type FigureName = keyof typeof FIGURES

/** A figure over all runs of a cell. */
export function figureOf({ runs }: CellResult, name: FigureName): Summary {
  return summaryOf(runs.map(FIGURES[name]))
}

/** The same of a latency; undefined where no run has it. */
export function latencyOf({ runs }: CellResult, of: 'all' | 'admits' | 'denials', name: keyof LatencyFigures): Summary | undefined {
  const samples = runs.flatMap((run) => run[of]?.[name] ?? [])
  return samples.length === 0 ? undefined : summaryOf(samples)
}
