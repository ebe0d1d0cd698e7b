import { type Cell, MOST_CALLERS } from './cell.js'
import type { Place } from './servers.js'
import type { Stint } from './stint.js'

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
