import type { SqlRow } from './sql-runner.js'
import { SWEPT_ROWS } from './statements.js'

/** Swaps after which one goes over some rows. */
const SWAPS = 64

/** Removes expired rows: now and then a swap goes over the next rows of the table, one step at a time. */
export class Sweeper {
  readonly #sweep: (after: Uint8Array) => Promise<readonly SqlRow[]>
  #after = new Uint8Array(0)
  #swaps = 0
  #isSweeping = false

  constructor(sweep: (after: Uint8Array) => Promise<readonly SqlRow[]>) {
    this.#sweep = sweep
  }

  /** Counts a swap. The swap does not wait for the step that it may begin. */
  swapped(count = 1): void {
    this.#swaps += count
    if (this.#swaps < SWAPS || this.#isSweeping) return
    this.#swaps = 0
    this.#isSweeping = true
    void this.#step()
  }

  async #step(): Promise<void> {
    try {
      const [row] = await this.#sweep(this.#after)
      const isLast = Number(row?.seen) < SWEPT_ROWS
      this.#after = isLast ? new Uint8Array(0) : Uint8Array.from(row?.last as Uint8Array)
    } catch {
      // The next step tries the same rows.
    } finally {
      this.#isSweeping = false
    }
  }
}
