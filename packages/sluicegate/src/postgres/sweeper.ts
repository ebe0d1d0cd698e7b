import type { SqlRow } from './sql-runner.js'
import { SWEPT_ROWS } from './statements.js'

/** Swaps after which one goes over some rows, and after which where few of the last ones had expired. */
const SWAPS = 64
const SWAPS_OF_FEW = 512
const FEW = SWEPT_ROWS / 8

/** Removes expired rows: now and then a swap goes over the next rows of the table, one step at a time. */
export class Sweeper {
  readonly #sweep: (after: Uint8Array) => Promise<readonly SqlRow[]>
  readonly #failed: (error: unknown) => void
  #after = new Uint8Array(0)
  #swaps = 0
  #next = SWAPS
  #isSweeping = false

  constructor(sweep: (after: Uint8Array) => Promise<readonly SqlRow[]>, failed: (error: unknown) => void) {
    this.#sweep = sweep
    this.#failed = failed
  }

  /** Counts a swap. The swap does not wait for the step that it may begin. */
  swapped(count = 1): void {
    this.#swaps += count
    if (this.#swaps < this.#next || this.#isSweeping) return
    this.#swaps = 0
    this.#isSweeping = true
    void this.#step()
  }

  async #step(): Promise<void> {
    try {
      const [row] = await this.#sweep(this.#after)
      const isLast = Number(row?.seen) < SWEPT_ROWS
      this.#next = Number(row?.gone) < FEW ? SWAPS_OF_FEW : SWAPS
      this.#after = isLast ? new Uint8Array(0) : Uint8Array.from(row?.last as Uint8Array)
    } catch (error) {
      // The next step tries the same rows.
      this.#failed(error)
    } finally {
      this.#isSweeping = false
    }
  }
}
