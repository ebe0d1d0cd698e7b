import { writeSync } from 'node:fs'

/** Lines that wait for room, and their bytes. */
const MOST = { lines: 1_000, bytes: 1 << 20 } as const
/** Between two attempts to write what waits. */
const AGAIN_MS = 250

/** What became of lines that could not be written. */
export interface LineCounts {
  /** They are tried again. */
  readonly waiting: number
  /** There was no room for them here either. */
  readonly lost: number
}

/**
 * Writes lines at once to a file or a pipe, and never fails: what a full disk, a full pipe or a closed one does not take waits here, as far as
 * there is room, and is tried again in order. Lines beyond that are counted, and the count is written when there is room again.
 */
export class LineOutput {
  readonly #write: (bytes: Uint8Array) => number
  readonly #lostLine: (lost: number) => string
  readonly #failed: (error: Error) => void
  #waiting: Buffer[] = []
  #bytes = 0
  #lost = 0
  #unsaid = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * @param lostLine a line about lines that are lost.
   * @param failed hears of each attempt that failed.
   */
  constructor(write: (bytes: Uint8Array) => number, lostLine: (lost: number) => string, failed: (error: Error) => void = () => undefined) {
    this.#write = write
    this.#lostLine = lostLine
    this.#failed = failed
  }

  /** @param fd 1 for the output, 2 for the error output. */
  static to(fd: 1 | 2, lostLine: (lost: number) => string, failed?: (error: Error) => void): LineOutput {
    return new LineOutput((bytes) => writeSync(fd, bytes), lostLine, failed)
  }

  get counts(): LineCounts {
    return { waiting: this.#waiting.length, lost: this.#lost }
  }

  /** @param line with its end. */
  write(line: string): void {
    const bytes = Buffer.from(line)
    if (this.#waiting.length === 0) {
      const rest = this.#written(bytes)
      if (rest !== undefined) this.#wait(rest)
    } else if (this.#waiting.length < MOST.lines && this.#bytes + bytes.length <= MOST.bytes) this.#wait(bytes)
    else {
      this.#lost++
      this.#unsaid++
    }
  }

  /** Writes what waits, as far as there is room now. */
  flush(): void {
    while (this.#waiting.length > 0) {
      const [first] = this.#waiting as [Buffer]
      const rest = this.#written(first)
      this.#bytes += (rest?.length ?? 0) - first.length
      if (rest !== undefined) {
        this.#waiting[0] = rest
        return
      }
      this.#waiting.shift()
    }
    clearInterval(this.#timer)
    this.#timer = undefined
    const lost = this.#unsaid
    this.#unsaid = 0
    if (lost > 0) this.write(this.#lostLine(lost))
  }

  #wait(bytes: Buffer): void {
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    this.#timer ??= setInterval(() => this.flush(), AGAIN_MS).unref()
  }

  /** What is left of it; undefined when all is written. */
  #written(bytes: Buffer): Buffer | undefined {
    let rest = bytes
    try {
      while (rest.length > 0) {
        const taken = this.#write(rest)
        if (taken === 0) break
        rest = rest.subarray(taken)
      }
    } catch (error) {
      // ENOSPC, EDQUOT, EIO: a disk; EAGAIN: a pipe that is not read; EPIPE, EBADF: one that is closed, which may be opened again.
      this.#failed(error as Error)
    }
    return rest.length === 0 ? undefined : rest
  }
}
