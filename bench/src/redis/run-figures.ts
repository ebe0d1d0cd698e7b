import { type Summary, summaryOf } from '../samples.js'
import type { CellResult, FleetRun } from './cell.js'
import type { LatencyFigures } from './latency.js'

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

export type FigureName = keyof typeof FIGURES

/** A figure over all runs of a cell. */
export function figureOf({ runs }: CellResult, name: FigureName): Summary {
  return summaryOf(runs.map(FIGURES[name]))
}

/** The same of a latency; undefined where no run has it. */
export function latencyOf({ runs }: CellResult, of: 'all' | 'admits' | 'denials', name: keyof LatencyFigures): Summary | undefined {
  const samples = runs.flatMap((run) => run[of]?.[name] ?? [])
  return samples.length === 0 ? undefined : summaryOf(samples)
}
