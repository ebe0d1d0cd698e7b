import { TextDecoder } from 'node:util'

/** Longer lines are skipped and counted: no server writes them, and memory stays bounded. */
export const MAX_LINE_BYTES = 65_536
const NEWLINE = 10
const RETURN = 13

/** One line: `bytes` from `start` to `end`, valid during the call. */
export type OnLine = (bytes: Buffer, start: number, end: number) => void

const UTF8_MARK = Buffer.from('\ufeff')
/** How a file in UTF-16 begins, by the name of its encoding. */
const UTF16_MARKS = { 'utf-16le': Buffer.from([0xff, 0xfe]), 'utf-16be': Buffer.from([0xfe, 0xff]) } as const

/** The bytes of a file as UTF-8: a byte order mark at its begin says that it is in UTF-16, as what PowerShell writes. */
class Utf8Bytes {
  #decoder: TextDecoder | undefined
  /** What may be a part of a mark; undefined behind the begin. */
  #begun: Buffer | undefined = Buffer.alloc(0)

  of(chunk: Buffer): Buffer {
    const bytes =
      this.#begun === undefined ? chunk : this.#behindMark(this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]))
    return this.#decoder === undefined ? bytes : Buffer.from(this.#decoder.decode(bytes, { stream: true }))
  }

  #behindMark(bytes: Buffer): Buffer {
    const isPart = [UTF8_MARK, ...Object.values(UTF16_MARKS)].some((mark) => bytes.length < mark.length && beginsWith(mark, bytes))
    this.#begun = isPart ? Buffer.from(bytes) : undefined
    if (isPart) return bytes.subarray(0, 0)
    for (const [encoding, mark] of Object.entries(UTF16_MARKS)) if (beginsWith(bytes, mark)) this.#decoder = new TextDecoder(encoding)
    return beginsWith(bytes, UTF8_MARK) ? bytes.subarray(UTF8_MARK.length) : bytes
  }
}

function beginsWith(bytes: Buffer, head: Buffer): boolean {
  return bytes.subarray(0, head.length).equals(head)
}

/** Lines out of chunks, without a copy of any line but the one that crosses two chunks. Empty lines are passed over. */
export class LineSplitter {
  /** Lines longer than {@link MAX_LINE_BYTES}. */
  tooLong = 0
  readonly #onLine: OnLine
  #utf8 = new Utf8Bytes()
  readonly #carried = Buffer.allocUnsafe(MAX_LINE_BYTES)
  #carriedLength = 0
  #isSkipping = false

  constructor(onLine: OnLine) {
    this.#onLine = onLine
  }

  write(bytes: Buffer): void {
    const chunk = this.#utf8.of(bytes)
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

  /** What comes next is the begin of a file. */
  endOfFile(): void {
    this.end()
    this.#utf8 = new Utf8Bytes()
  }

  /** Forgets the begin of a line that came last: the rest of it does not come. */
  drop(): void {
    this.#carriedLength = 0
    this.#isSkipping = false
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
