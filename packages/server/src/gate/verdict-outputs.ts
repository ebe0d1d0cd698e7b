import type { VerdictInForce } from 'sluicegate/gate'
import { UsageError } from '../cli/usage-error.js'
import type { VerdictCalls } from './verdict-calls.js'
import { runCommand, type VerdictFile } from './verdict-files.js'

/** Where verdicts go. */
export interface OutputOptions {
  readonly files: readonly VerdictFile[]
  readonly calls: VerdictCalls | undefined
  /** A command that runs after a file has changed. */
  readonly reload: string | undefined
  /** Files are written, and the command runs, at most so often. */
  readonly reloadEveryMs: number
  readonly onNotice: (text: string) => void
}

/** Brings files, and a service, into agreement with the verdicts in force. What failed is reported, and tried again with the next list. */
export class VerdictOutputs {
  /** Files written, commands run, calls made. */
  written = 0
  readonly #options: OutputOptions
  #failed = 0
  #filesMs = Number.NEGATIVE_INFINITY
  #isReloadDue = false
  #lastFault: string | undefined

  constructor(options: OutputOptions) {
    this.#options = options
  }

  get failed(): number {
    return this.#failed + (this.#options.calls?.failed ?? 0)
  }

  /** Keys that a file cannot hold. */
  get leftOut(): number {
    return this.#options.files.reduce((sum, { leftOut }) => sum + leftOut, 0)
  }

  /** Empties the files. @throws {UsageError} where one cannot be written. */
  async start(): Promise<void> {
    for (const file of this.#options.files) {
      try {
        await file.write([])
      } catch (error) {
        throw new UsageError(`${file.path}: cannot be written: ${(error as Error).message}`, 1)
      }
      this.#isReloadDue = true
    }
  }

  async write(verdicts: readonly VerdictInForce[]): Promise<void> {
    const { calls, reloadEveryMs } = this.#options
    let fault: string | undefined
    if (performance.now() >= this.#filesMs + reloadEveryMs) fault = await this.#writeFiles(verdicts)
    if (calls !== undefined) {
      const made = calls.made
      fault = (await calls.write(verdicts)) ?? fault
      this.written += calls.made - made
    }
    if (fault !== undefined && fault !== this.#lastFault) this.#options.onNotice(fault)
    this.#lastFault = fault
  }

  /** Empties the files at the end: without this process no key would be freed. Blocks that a service holds end by themselves. */
  async clear(): Promise<void> {
    const fault = await this.#writeFiles([])
    if (fault !== undefined) this.#options.onNotice(fault)
  }

  async #writeFiles(verdicts: readonly VerdictInForce[]): Promise<string | undefined> {
    const { files, reload } = this.#options
    this.#filesMs = performance.now()
    try {
      for (const file of files) {
        if (!(await file.write(verdicts))) continue
        this.written++
        this.#isReloadDue = true
      }
      if (this.#isReloadDue && reload !== undefined) {
        await runCommand(reload)
        this.written++
      }
      this.#isReloadDue = false
      return undefined
    } catch (error) {
      this.#failed++
      return (error as Error).message
    }
  }
}
