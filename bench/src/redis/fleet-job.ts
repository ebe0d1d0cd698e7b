import type { Cell } from './cell.js'
import type { Place } from './place.js'
import type { Stint } from './stint.js'

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
