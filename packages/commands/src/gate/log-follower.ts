import type { FileHandle } from 'node:fs/promises'
import { constants, open, stat } from 'node:fs/promises'
import { LineSplitter, type OnLine } from '../replay/line-splitter.js'
import { UsageError } from '../terminal/usage-error.js'

const CHUNK_BYTES = 1 << 20
/** The end of what was read, by which a file that was written again is known though it is longer than before. */
const MARK_BYTES = 64
/** The lines at the start that say what the others are. */
const HEAD_BYTES = 65_536
const HASH = 0x23

/** How a log is followed. */
export interface FollowOptions {
  readonly file: string
  /** False: from the end of the file as it is now. A file that comes later is read from its start. */
  readonly fromStart: boolean
  /** A file that is missing is a fault, and not awaited. */
  readonly mustExist?: boolean
  /** A reading that is long ends early. */
  readonly isStopping?: () => boolean
  readonly onLine: OnLine
  /** What the user may want to know: a rotation, a file that is missing. */
  readonly onNotice: (text: string) => void
}

/** One file, read on from where the last reading ended. */
class OpenLog {
  readonly #handle: FileHandle
  readonly #splitter: LineSplitter
  readonly #buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  readonly device: number
  readonly inode: number
  #offset = 0
  #mark: Buffer = Buffer.alloc(0)
  #isInHead = false

  private constructor(handle: FileHandle, { dev, ino }: { readonly dev: number; readonly ino: number }, onLine: OnLine) {
    this.#handle = handle
    this.device = dev
    this.inode = ino
    this.#splitter = new LineSplitter((bytes, start, end) => {
      if (!this.#isInHead || bytes[start] === HASH) onLine(bytes, start, end)
    })
  }

  /** Undefined where there is no file. @throws {UsageError} for what is no regular file. */
  static async open(file: string, onLine: OnLine): Promise<OpenLog | undefined> {
    let handle: FileHandle
    try {
      // Nothing but a regular file is opened: a pipe without a writer would wait.
      if (!(await stat(file)).isFile()) throw new UsageError(`${file}: cannot be followed: it is no regular file`, 1)
      handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    const found = await handle.stat()
    if (found.isFile()) return new OpenLog(handle, found, onLine)
    await handle.close()
    throw new UsageError(`${file}: cannot be followed: it is no regular file`, 1)
  }

  get tooLong(): number {
    return this.#splitter.tooLong
  }

  /** Of what is skipped, the lines that begin with `#` at its start are given out. */
  async skipToEnd(): Promise<void> {
    // UTF-16 goes on at an even place.
    const size = 2 * Math.floor((await this.#handle.stat()).size / 2)
    const head = await this.#handle.read(this.#buffer, 0, Math.min(HEAD_BYTES, size), 0)
    this.#isInHead = true
    this.#splitter.write(this.#buffer.subarray(0, head.bytesRead))
    this.#splitter.drop()
    this.#isInHead = false
    const length = Math.min(size, MARK_BYTES)
    const { bytesRead } = await this.#handle.read(this.#buffer, 0, length, size - length)
    this.#mark = Buffer.from(this.#buffer.subarray(0, bytesRead))
    this.#offset = size - length + bytesRead
  }

  /** Reads to the end, or until it is to stop. False where the file was truncated or written again: then it was read from its start. */
  async readOn(isStopping = (): boolean => false): Promise<boolean> {
    let isSame = true
    if ((await this.#handle.stat()).size < this.#offset) {
      this.#beginAnew()
      isSame = false
    }
    for (;;) {
      if (isStopping()) return isSame
      const mark = this.#mark
      const { bytesRead } = await this.#handle.read(this.#buffer, 0, CHUNK_BYTES, this.#offset - mark.length)
      if (bytesRead <= mark.length) {
        if (bytesRead === mark.length && this.#buffer.subarray(0, mark.length).equals(mark)) return isSame
        if (mark.length === 0) return isSame
        this.#beginAnew()
        isSame = false
        continue
      }
      if (!this.#buffer.subarray(0, mark.length).equals(mark)) {
        this.#beginAnew()
        isSame = false
        continue
      }
      this.#splitter.write(this.#buffer.subarray(mark.length, bytesRead))
      this.#offset += bytesRead - mark.length
      this.#mark = Buffer.from(this.#buffer.subarray(Math.max(0, bytesRead - MARK_BYTES), bytesRead))
    }
  }

  /** Gives out a last line without a newline. */
  end(): void {
    this.#splitter.end()
  }

  async close(): Promise<void> {
    this.end()
    await this.#handle.close()
  }

  #beginAnew(): void {
    this.#splitter.endOfFile()
    this.#offset = 0
    this.#mark = Buffer.alloc(0)
  }
}

/**
 * The lines that are added to a log, through rotation by rename and by truncation. After a rename the old file is read until the next poll:
 * its writer may be a moment late with the new one.
 */
export class LogFollower {
  readonly #options: FollowOptions
  #current: OpenLog | undefined
  #previous: OpenLog | undefined
  #isFirst = true
  #wasMissing = false
  #tooLong = 0

  constructor(options: FollowOptions) {
    this.#options = options
  }

  /** Lines that were too long and left out. */
  get tooLong(): number {
    return this.#tooLong + (this.#current?.tooLong ?? 0) + (this.#previous?.tooLong ?? 0)
  }

  /** Finds the place to begin at, and reads nothing. @throws {UsageError} for a file that cannot be followed. */
  async open(): Promise<void> {
    await this.#reading(async () => {
      this.#current ??= await this.#open()
    })
  }

  /** Reads what was added since the last poll. @throws {UsageError} for a file that cannot be followed. */
  async poll(): Promise<void> {
    await this.#reading(() => this.#poll())
  }

  /** Gives out a last line without a newline: for a log that has ended. */
  end(): void {
    this.#current?.end()
  }

  async close(): Promise<void> {
    await this.#drop(this.#previous)
    await this.#drop(this.#current)
    this.#previous = undefined
    this.#current = undefined
  }

  async #reading(read: () => Promise<void>): Promise<void> {
    try {
      await read()
    } catch (error) {
      if (error instanceof UsageError || (error as NodeJS.ErrnoException).code === undefined) throw error
      throw new UsageError(`${this.#options.file}: cannot be read: ${(error as Error).message}`, 1)
    }
  }

  async #poll(): Promise<void> {
    const { file, onNotice, isStopping } = this.#options
    if (this.#previous !== undefined) {
      await this.#previous.readOn(isStopping)
      await this.#drop(this.#previous)
      this.#previous = undefined
    }
    this.#current ??= await this.#open()
    if (this.#current === undefined) return
    if (!(await this.#current.readOn(isStopping))) onNotice(`${file} was truncated: it is read from its start`)
    const found = await stat(file).catch(() => undefined)
    if (found === undefined || (found.dev === this.#current.device && found.ino === this.#current.inode)) return
    onNotice(`${file} was rotated: the new file is read from its start`)
    this.#previous = this.#current
    this.#current = undefined
    this.#current = await this.#open()
    await this.#current?.readOn(isStopping)
  }

  async #open(): Promise<OpenLog | undefined> {
    const { file, fromStart, mustExist, onLine, onNotice } = this.#options
    const log = await OpenLog.open(file, onLine)
    if (log === undefined) {
      if (mustExist) throw new UsageError(`${file} does not exist`, 1)
      if (!this.#wasMissing) onNotice(`${file} does not exist: it is followed as soon as it does`)
      this.#wasMissing = true
    } else {
      if (this.#isFirst && !fromStart && !this.#wasMissing) await log.skipToEnd()
      this.#wasMissing = false
      this.#isFirst = false
    }
    return log
  }

  async #drop(log: OpenLog | undefined): Promise<void> {
    if (log === undefined) return
    await log.close()
    this.#tooLong += log.tooLong
  }
}
