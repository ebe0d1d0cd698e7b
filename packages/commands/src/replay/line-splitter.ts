/** Longer lines are skipped and counted: no server writes them, and memory stays bounded. */
export const MAX_LINE_BYTES = 65_536
const NEWLINE = 10
const RETURN = 13

/** One line: `bytes` from `start` to `end`, valid during the call. */
export type OnLine = (bytes: Buffer, start: number, end: number) => void

/** Lines out of chunks, without a copy of any line but the one that crosses two chunks. Empty lines are passed over. */
export class LineSplitter {
  /** Lines longer than {@link MAX_LINE_BYTES}. */
  tooLong = 0
  readonly #onLine: OnLine
  readonly #carried = Buffer.allocUnsafe(MAX_LINE_BYTES)
  #carriedLength = 0
  #isSkipping = false

  constructor(onLine: OnLine) {
    this.#onLine = onLine
  }

  write(chunk: Buffer): void {
    let start = 0
    let stop = chunk.indexOf(NEWLINE)
    if (stop >= 0 && (this.#carriedLength > 0 || this.#isSkipping)) {
      this.#carry(chunk, 0, stop)
      this.end()
      start = stop + 1
      stop = chunk.indexOf(NEWLINE, start)
    }
    for (; stop >= 0; stop = chunk.indexOf(NEWLINE, start)) {
      if (stop - start > MAX_LINE_BYTES) this.tooLong++
      else this.#give(chunk, start, stop)
      start = stop + 1
    }
    this.#carry(chunk, start, chunk.length)
  }

  /** The last line, which may have no newline. */
  end(): void {
    const length = this.#carriedLength
    this.#carriedLength = 0
    this.#isSkipping = false
    if (length > 0) this.#give(this.#carried, 0, length)
  }

  #carry(chunk: Buffer, start: number, end: number): void {
    if (this.#isSkipping) return
    if (this.#carriedLength + end - start > MAX_LINE_BYTES) {
      this.tooLong++
      this.#isSkipping = true
      this.#carriedLength = 0
      return
    }
    chunk.copy(this.#carried, this.#carriedLength, start, end)
    this.#carriedLength += end - start
  }

  #give(bytes: Buffer, start: number, end: number): void {
    const stop = end > start && bytes[end - 1] === RETURN ? end - 1 : end
    if (stop > start) this.#onLine(bytes, start, stop)
  }
}
