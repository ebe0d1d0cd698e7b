import { type Summary, sum, summaryOf } from 'sluicegate-testkit/samples.js'
import { BURST, RATE_PER_S } from './bucket.js'
import { type Cell, type CellResult, type FleetRun, Latency, type LatencyFigures, MOST_CALLERS } from './cell.js'
import type { Place } from './servers.js'

/**
 * What the keys were worth, and what was made of it. The budget is that of all keys, each by itself over the whole run, from the first question to the last answer: longer than the authority
 * saw it, so that what is counted as over is over on every clock.
 *
 * @param leaseMs of the policy that is leased: while a token is good, what flows back is not in the burst.
 */
export function budgetUse({ admitted, elapsedMs }: Pick<Stint, 'admitted' | 'elapsedMs'>, leaseMs: number) {
  const ofOne = BURST + (RATE_PER_S * elapsedMs) / 1000
  const ofOneLeased = ofOne - (RATE_PER_S * leaseMs) / 1000
  return {
    admitted: sum(admitted),
    budget: ofOne * admitted.length,
    leasedBudget: ofOneLeased * admitted.length,
    overGrant: sum(admitted.map((tokens) => Math.max(0, tokens - Math.floor(ofOne)))),
  }
}

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

/** How long and how often; from the command line. */
export interface FleetEffort {
  readonly runs: number
  /** Of the cells of 256 callers, which everything is judged by, and of the others. */
  readonly longMs: number
  readonly shortMs: number
}

export const FULL: FleetEffort = { runs: 5, longMs: 10_000, shortMs: 2_000 }
export const QUICK: FleetEffort = { runs: 1, longMs: 400, shortMs: 400 }

export function msOf({ longMs, shortMs }: FleetEffort, { callers, pace }: Cell): number {
  return callers === MOST_CALLERS && pace === 0 ? longMs : shortMs
}

/** The job of a process with a contender in it. */
export interface FleetJob {
  readonly cell: Cell
  readonly place: Place
  readonly ms: number
  /** What its keys begin with: those of no other process are the same. */
  readonly prefix: string
}

/** What it answers. */
export interface FleetStint extends Stint {
  /** Decisions that were made without the servers because no answer came in time. */
  readonly withoutStore: number
}
