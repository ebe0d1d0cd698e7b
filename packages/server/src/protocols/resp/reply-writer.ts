import { ARRAY, BULK, CR, LF, MINUS, ZERO } from './resp-bytes.js'

const FIRST_BYTES = 1_024
/** A type, the longest integer and the end of the line. */
const MAX_INTEGER_BYTES = 24

/** Types that only a reply has. */
const INTEGER = 0x3a
const MAP = 0x25

/** Writes replies in RESP 2 or 3 into one buffer. */
export class ReplyWriter {
  /** 2 or 3, as the client chose with `HELLO`. */
  protocol: 2 | 3 = 2
  #bytes: Buffer
  #length = 0

  constructor(bytes = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
  }

  /** Bytes written since the last {@link take}. */
  get length(): number {
    return this.#length
  }

  /** The replies so far, as a copy; the writer is empty afterwards and keeps its buffer unless that has grown large. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length))
    this.#length = 0
    if (this.#bytes.length > 64 * FIRST_BYTES) this.#bytes = Buffer.allocUnsafeSlow(FIRST_BYTES)
    return taken
  }

  /** Adds replies that another writer has made. */
  append(replies: Buffer): void {
    this.#room(replies.length)
    replies.copy(this.#bytes, this.#length)
    this.#length += replies.length
  }

  simple(text: string): void {
    this.#line(`+${text}`)
  }

  /** @param text begins with a code in capitals, such as `ERR`; line ends in it become spaces. */
  error(text: string): void {
    this.#line(`-${text.replace(/[\r\n]+/g, ' ')}`)
  }

  /** A decision as the five integers of `CL.THROTTLE`, with times in the unit of the command; `more` items follow. */
  decision(allowed: boolean, limit: number, remaining: number, retryAfter: number, resetAfter: number, more = 0): void {
    this.array(5 + more)
    this.integer(allowed ? 0 : 1)
    this.integer(limit)
    this.integer(remaining)
    this.integer(retryAfter)
    this.integer(resetAfter)
  }

  integer(value: number): void {
    this.#header(INTEGER, value)
  }

  bulk(value: string | Uint8Array): void {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value
    this.#header(BULK, bytes.length)
    this.#room(bytes.length + 2)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
    this.#endLine()
  }

  /** Begins an array: write its items next. */
  array(items: number): void {
    this.#header(ARRAY, items)
  }

  /** Begins a map: write each key and its value next. RESP 2 has none and gets an array. */
  map(pairs: number): void {
    if (this.protocol === 3) this.#header(MAP, pairs)
    else this.#header(ARRAY, pairs * 2)
  }

  null(): void {
    this.#room(8)
    this.#length += this.#bytes.write(this.protocol === 3 ? '_\r\n' : '$-1\r\n', this.#length, 'latin1')
  }

  #line(text: string): void {
    this.#room(Buffer.byteLength(text) + 2)
    this.#length += this.#bytes.write(text, this.#length)
    this.#endLine()
  }

  #header(type: number, value: number): void {
    this.#room(MAX_INTEGER_BYTES)
    const bytes = this.#bytes
    bytes[this.#length++] = type
    if (value >= 0 && value < 10) {
      bytes[this.#length++] = ZERO + value
    } else if (value > -1_000_000_000 && value < 1_000_000_000) {
      this.#digits(value)
    } else {
      this.#length += bytes.write(String(value), this.#length, 'latin1')
    }
    this.#endLine()
  }

  #digits(value: number): void {
    const bytes = this.#bytes
    let rest = value
    if (rest < 0) {
      bytes[this.#length++] = MINUS
      rest = -rest
    }
    let digits = 1
    for (let bound = 10; rest >= bound; bound *= 10) digits++
    this.#length += digits
    for (let at = this.#length - 1; digits > 0; digits--, at--) {
      const quotient = (rest / 10) | 0
      bytes[at] = ZERO + rest - quotient * 10
      rest = quotient
    }
  }

  #endLine(): void {
    this.#bytes[this.#length++] = CR
    this.#bytes[this.#length++] = LF
  }

  #room(bytes: number): void {
    if (this.#bytes.length - this.#length >= bytes) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + bytes))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
