import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type Cell, type CellResult, cellName, type FleetRun } from './cell.js'

/** A file for each cell, written after each run: what was interrupted goes on where it stopped. */
export class CellFiles {
  private readonly folder: string

  constructor(folder: string) {
    this.folder = folder
    mkdirSync(folder, { recursive: true })
  }

  read(cell: Cell): CellResult {
    const file = this.fileOf(cell)
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as CellResult) : { cell, runs: [] }
  }

  add(cell: Cell, run: FleetRun): void {
    const result: CellResult = { cell, runs: [...this.read(cell).runs, run] }
    writeFileSync(this.fileOf(cell), `${JSON.stringify(result)}\n`)
  }

  private fileOf(cell: Cell): string {
    return `${this.folder}/${cellName(cell)}.json`
  }
}
