import type { SqlRow } from './sql-runner.js'
import { SWEPT_ROWS } from './statements.js'

/** Swaps after which one goes over some rows. */
const SWAPS = 64

/** Removes expired rows: whoever swaps goes over the next few rows of the table now and then, one step at a time. */
export class Sweeper {
  readonly #sweep: (after: Uint8Array) => Promise<readonly SqlRow[]>
  #after = new Uint8Array(0)
  #swaps = 0
  #isSweeping = false

  constructor(sweep: (after: Uint8Array) => Promise<readonly SqlRow[]>) {
    this.#sweep = sweep
  }

  /** Counts a swap. Nobody waits for the step that it may begin. */
  swapped(): void {
    if (++this.#swaps % SWAPS !== 0 || this.#isSweeping) return
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
