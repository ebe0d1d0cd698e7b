import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { CALLERS, type Cell, type CellResult, cellName, type FleetRun, MOST_CALLERS, SHAPES } from './cell.js'
import { FLEET_CONTENDER_NAMES, type FleetContenderName } from './contenders.js'
import type { FleetResults } from './fleet-results.js'
import type { Topology } from './servers.js'

/** Questions a second where they come at a steady pace: fewer than most contenders can answer, and 39 a second for each of 256 keys. */
export const PACE_PER_S = 10_000

/** What is measured side by side: cells that differ only in who decides. */
export function cellGroups(
  topology: Topology,
  contenders: readonly FleetContenderName[] = FLEET_CONTENDER_NAMES,
): readonly (readonly Cell[])[] {
  return SHAPES.flatMap((shape) => {
    const closed = CALLERS.map((callers) => ({ topology, shape, callers, pace: 0 }))
    const paced = { topology, shape, callers: MOST_CALLERS, pace: PACE_PER_S }
    return [...closed, paced].map((setting) => contenders.map((contender) => ({ contender, ...setting })))
  })
}

/** A file for each cell, written after each run: what was interrupted goes on where it stopped. Other cells are those of the last results. */
export class CellFiles {
  private readonly folder: string
  private readonly saved: ReadonlyMap<string, CellResult>

  /** @param resultsFile of runs that came to their end; it need not exist. */
  constructor(folder: string, resultsFile: string) {
    this.folder = folder
    const { cells } = existsSync(resultsFile) ? (JSON.parse(readFileSync(resultsFile, 'utf8')) as FleetResults) : { cells: [] }
    this.saved = new Map(cells.map((result) => [cellName(result.cell), result]))
    mkdirSync(folder, { recursive: true })
  }

  read(cell: Cell): CellResult {
    const file = this.fileOf(cell)
    return existsSync(file)
      ? (JSON.parse(readFileSync(file, 'utf8')) as CellResult)
      : (this.saved.get(cellName(cell)) ?? { cell, runs: [] })
  }

  add(cell: Cell, run: FleetRun): void {
    const result: CellResult = { cell, runs: [...this.read(cell).runs, run] }
    writeFileSync(this.fileOf(cell), `${JSON.stringify(result)}\n`)
  }

  private fileOf(cell: Cell): string {
    return `${this.folder}/${cellName(cell)}.json`
  }
}
