import { type Cell, MOST_CALLERS } from './cell.js'

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
