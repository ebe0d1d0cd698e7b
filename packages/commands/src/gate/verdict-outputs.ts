import type { VerdictInForce } from 'sluicegate/gate'
import { UsageError } from '../terminal/usage-error.js'
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
  #writing: Promise<void> | undefined
  #calling: Promise<void> | undefined
  #fileFault: string | undefined
  #callFault: string | undefined

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

  /** Starts to write a list. What is still under way with an earlier one is left alone: a slow service or command holds up nothing else. */
  write(verdicts: readonly VerdictInForce[]): void {
    const { files, calls, reloadEveryMs } = this.#options
    if (files.length > 0 && this.#writing === undefined && performance.now() >= this.#filesMs + reloadEveryMs) {
      this.#writing = this.#writeFiles(verdicts).then((fault) => {
        this.#fileFault = this.#reported(fault, this.#fileFault)
        this.#writing = undefined
      })
    }
    if (calls === undefined || this.#calling !== undefined) return
    const made = calls.made
    this.#calling = calls.write(verdicts).then((fault) => {
      this.written += calls.made - made
      this.#callFault = this.#reported(fault, this.#callFault)
      this.#calling = undefined
    })
  }

  /** Writes a list, and no other after it. @throws {UsageError} where a part of it could not be written. */
  async writeLast(verdicts: readonly VerdictInForce[]): Promise<void> {
    const { files, calls } = this.#options
    const made = calls?.made ?? 0
    const faults = [files.length > 0 ? await this.#writeFiles(verdicts) : undefined, await calls?.write(verdicts)]
    this.written += (calls?.made ?? 0) - made
    const fault = faults.find((each) => each !== undefined)
    if (fault !== undefined) throw new UsageError(fault, 1)
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await Promise.all([this.#writing, this.#calling])
  }

  /** Empties the files at the end: without this process no key would be freed. Blocks that a service holds end by themselves. */
  async clear(): Promise<void> {
    await this.settled()
    this.#reported(await this.#writeFiles([]), undefined)
  }

  /** A fault is reported once, and again after it was gone. */
  #reported(fault: string | undefined, before: string | undefined): string | undefined {
    if (fault !== undefined && fault !== before) this.#options.onNotice(fault)
    return fault
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
