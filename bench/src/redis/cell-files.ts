import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type Cell, type CellResult, cellName, type FleetRun } from './cell.js'
import type { FleetResults } from './fleet-results.js'

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
