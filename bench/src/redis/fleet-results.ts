import type { Machine } from '../machine.js'
import type { Cell, CellResult } from './cell.js'
import type { FleetEffort } from './fleet-effort.js'

/** All cells, and where they were measured: what tables, plots and verdicts are made from. */
export interface FleetResults {
  readonly kind: 'redis'
  readonly finishedAt: string
  readonly machine: Machine
  /** Name and version, such as `Redis 7.0.15`. */
  readonly server: string
  readonly rivals: Readonly<Record<string, string>>
  readonly effort: FleetEffort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly cells: readonly CellResult[]
}

/** A cell's result; undefined when it was not measured. */
export function resultOf({ cells }: FleetResults, wanted: Cell): CellResult | undefined {
  return cells.find(({ cell, runs }) => {
    const isIt = cell.contender === wanted.contender && cell.topology === wanted.topology && cell.shape === wanted.shape
    return isIt && cell.callers === wanted.callers && cell.pace === wanted.pace && runs.length > 0
  })
}
