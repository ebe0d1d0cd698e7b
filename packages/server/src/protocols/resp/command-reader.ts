import { ARRAY, BULK, CR, LF, MINUS, ProtocolFault, ZERO } from './resp-bytes.js'

const SPACE = 0x20
const DOUBLE_QUOTE = 0x22
const SINGLE_QUOTE = 0x27
const BACKSLASH = 0x5c
const ESCAPES: Readonly<Record<string, number>> = { n: 0x0a, r: 0x0d, t: 0x09, b: 0x08, a: 0x07 }

/**
 * Splits a line of plain text into arguments as Redis does: at white space, with "double quotes" that know `\n`, `\x00` and the like, and
 * 'single quotes' that know only `\'`. Fills `starts` and `ends`, and returns the bytes that they refer to.
 *
 * @throws {ProtocolFault} for unbalanced quotes.
 */
function splitInline(line: Buffer, starts: number[], ends: number[]): Buffer {
  starts.length = 0
  ends.length = 0
  const bytes = Buffer.allocUnsafe(line.length)
  let length = 0
  let at = 0
  for (;;) {
    while (at < line.length && isSpace(line[at] as number)) at++
    if (at >= line.length) return bytes
    starts.push(length)
    while (at < line.length && !isSpace(line[at] as number)) {
      const byte = line[at++] as number
      if (byte !== DOUBLE_QUOTE && byte !== SINGLE_QUOTE) {
        bytes[length++] = byte
        continue
      }
      for (;;) {
        if (at >= line.length) throw unbalanced()
        const quoted = line[at++] as number
        if (quoted === byte) break
        if (quoted !== BACKSLASH || at >= line.length) {
          bytes[length++] = quoted
        } else if (byte === SINGLE_QUOTE) {
          bytes[length++] = line[at] === SINGLE_QUOTE ? (line[at++] as number) : BACKSLASH
        } else {
          const hex = /^x([0-9a-f]{2})/i.exec(line.toString('latin1', at, at + 3))?.[1]
          const escaped = line[at] as number
          bytes[length++] = hex === undefined ? (ESCAPES[String.fromCharCode(escaped)] ?? escaped) : Number.parseInt(hex, 16)
          at += hex === undefined ? 1 : 3
        }
      }
      // A closing quote ends the argument.
      if (at < line.length && !isSpace(line[at] as number)) throw unbalanced()
    }
    ends.push(length)
  }
}

function isSpace(byte: number): boolean {
  return byte === SPACE || (byte >= 0x09 && byte <= 0x0d) || byte === 0
}

function unbalanced(): ProtocolFault {
  return new ProtocolFault('unbalanced quotes in request')
}

/** Bounds on what a client may send in one command; beyond them the connection is closed, except beyond {@link MAX_ARGUMENT_BYTES}. */
export const MAX_ARGUMENTS = 1_024
/** The same before the client has authenticated, as in Redis. */
export const MAX_ARGUMENTS_UNAUTHENTICATED = 10
/** A command with a longer argument is read to its end, and answered with an error. */
export const MAX_ARGUMENT_BYTES = 16_384
const MAX_COMMAND_BYTES = 65_536
const MAX_INLINE_BYTES = 16_384
/** Of a line with a length: more digits than any allowed number has. */
const MAX_LENGTH_LINE_BYTES = 24

const PLUS = 0x2b

const NOTHING = Buffer.alloc(0)
/** What {@link CommandReader.next} keeps for the rest of a command at least, so that input in small pieces is copied once. */
const LEAST_HELD_BYTES = 512

/**
 * Reads commands from the bytes of a connection, in pieces of any size: arrays of bulk strings, and lines of plain text. The arguments of a
 * command are ranges of {@link CommandReader.bytes}, without copies.
 *
 * Source: https://redis.io/docs/latest/develop/reference/protocol-spec/
 */
export class CommandReader {
  /** Where the arguments of the current command are; argument `i` is from `starts[i]` to `ends[i]`. Valid until the next call. */
  bytes: Buffer = NOTHING
  readonly starts: number[] = []
  readonly ends: number[] = []
  /** Arguments of the current command, its name included. */
  count = 0
  maxArguments = MAX_ARGUMENTS
  /** Whether an argument of the current command is longer than {@link MAX_ARGUMENT_BYTES}. */
  hasLongArgument = false

  #input: Buffer = NOTHING
  /** Whether `#input` is a copy of this reader, with room after `#end`. */
  #isOwn = false
  #end = 0
  /** Where the unfinished command begins, and how far it has been parsed. */
  #begin = 0
  #at = 0
  /** Arguments of the unfinished command; 0 between two commands. */
  #wanted = 0
  #read = 0
  /** Length of the argument whose bytes come next, -1 before its length is known. */
  #length = -1
  #commandBytes = 0
  /** How far the line of an inline command has been searched. */
  #searched = 0

  /** Bytes of memory that the rest of the input takes. */
  get heldBytes(): number {
    return this.#isOwn ? this.#input.length : this.#end - this.#begin
  }

  /** Whether input is left that no call of {@link next} has returned. */
  get hasInput(): boolean {
    return this.#begin < this.#end
  }

  /** Adds input. The reader keeps the chunk until its commands have been read, or until the next call of {@link keep}. */
  push(chunk: Buffer): void {
    const rest = this.#end - this.#begin
    if (rest === 0) {
      this.#use(chunk, false)
      this.#end = chunk.length
      return
    }
    if (!this.#isOwn || this.#input.length - this.#end < chunk.length) this.#copy(Math.max(2 * rest, rest + chunk.length))
    chunk.copy(this.#input, this.#end)
    this.#end += chunk.length
  }

  /** Copies the rest of the input, so that the chunk it came in can be freed. Call it when {@link next} has returned false. */
  keep(): void {
    if (this.#begin === this.#end) this.#use(NOTHING, false)
    else if (!this.#isOwn) this.#copy(Math.max(LEAST_HELD_BYTES, 2 * (this.#end - this.#begin)))
  }

  /**
   * Reads the next command. False: more input is needed. An empty one, which gets no answer, has no arguments.
   *
   * @throws {ProtocolFault} after which nothing more can be read.
   */
  next(): boolean {
    if (this.#wanted === 0 && !this.#isBegun()) return false
    return this.#wanted === 0 || this.#finish()
  }

  /** An argument with one character for each byte. */
  latin1(i: number): string {
    return this.bytes.toString('latin1', this.starts[i], this.ends[i])
  }

  /** An argument as text; bytes that are no UTF-8 become U+FFFD. */
  text(i: number): string {
    return this.bytes.toString('utf8', this.starts[i], this.ends[i])
  }

  /** A copy of an argument. */
  copy(i: number): Buffer {
    return Buffer.from(this.bytes.subarray(this.starts[i], this.ends[i]))
  }

  /** An argument as an integer of 64 bits, rounded to a double; NaN if it is none. */
  integer(i: number): number {
    return integerIn(this.bytes, this.starts[i] as number, this.ends[i] as number)
  }

  /** Reads the first line of a command. True: an array has begun, or an inline command is complete, which may be empty. */
  #isBegun(): boolean {
    this.count = 0
    this.#begin = this.#at
    if (this.#at >= this.#end) return false
    if (this.#input[this.#at] !== ARRAY) return this.#readInline()
    const fault = this.maxArguments < MAX_ARGUMENTS ? 'unauthenticated multibulk length' : 'invalid multibulk length'
    const count = this.#number(fault)
    if (Number.isNaN(count)) return false
    if (count > this.maxArguments) throw new ProtocolFault(fault)
    this.#wanted = Math.max(count, 0)
    this.#read = 0
    this.#length = -1
    this.#commandBytes = 0
    this.hasLongArgument = false
    return true
  }

  /** Reads the arguments of an array. True: it is complete. */
  #finish(): boolean {
    const input = this.#input
    const end = this.#end
    while (this.#read < this.#wanted) {
      if (this.#length < 0) {
        if (this.#at >= end) return false
        const type = input[this.#at] as number
        if (type !== BULK) throw new ProtocolFault(`expected '$', got '${printable(type)}'`)
        const length = this.#number('invalid bulk length')
        if (Number.isNaN(length)) return false
        if (length < 0) throw new ProtocolFault('invalid bulk length')
        if (length > MAX_ARGUMENT_BYTES) this.hasLongArgument = true
        this.#commandBytes += length
        if (this.#commandBytes > MAX_COMMAND_BYTES) throw new ProtocolFault('too big request')
        this.#length = length
      }
      const after = this.#at + this.#length
      if (end < after + 2) return false
      if (input[after] !== CR || input[after + 1] !== LF) throw new ProtocolFault('expected CRLF after a bulk string')
      this.starts[this.#read] = this.#at
      this.ends[this.#read] = after
      this.#read++
      this.#at = after + 2
      this.#length = -1
    }
    this.count = this.#wanted
    this.#wanted = 0
    this.#begin = this.#at
    this.bytes = input
    return true
  }

  /** The number in the line that begins with a type; NaN while the line is incomplete. Moves behind the line. */
  #number(fault: string): number {
    const input = this.#input
    const end = this.#end
    let at = this.#at + 1
    const isNegative = at < end && input[at] === MINUS
    if (isNegative) at++
    const digits = at
    let number = 0
    for (; at < end; at++) {
      const digit = (input[at] as number) - ZERO
      if (digit < 0 || digit > 9) break
      number = number * 10 + digit
    }
    if (at - this.#at > MAX_LENGTH_LINE_BYTES) throw new ProtocolFault(fault)
    if (at + 1 >= end) {
      if (at < end && (input[at] !== CR || at === digits)) throw new ProtocolFault(fault)
      return Number.NaN
    }
    if (at === digits || input[at] !== CR || input[at + 1] !== LF) throw new ProtocolFault(fault)
    this.#at = at + 2
    return isNegative ? -number : number
  }

  #readInline(): boolean {
    this.hasLongArgument = false
    const input = this.#input
    const lineEnd = input.subarray(0, this.#end).indexOf(LF, Math.max(this.#searched, this.#at))
    if (lineEnd < 0) {
      if (this.#end - this.#at > MAX_INLINE_BYTES) throw new ProtocolFault('too big inline request')
      this.#searched = this.#end
      return false
    }
    if (lineEnd - this.#at > MAX_INLINE_BYTES) throw new ProtocolFault('too big inline request')
    const end = lineEnd > this.#at && input[lineEnd - 1] === CR ? lineEnd - 1 : lineEnd
    this.bytes = splitInline(input.subarray(this.#at, end), this.starts, this.ends)
    this.count = this.ends.length
    if (this.count > this.maxArguments) throw new ProtocolFault('too many arguments in inline request')
    this.#at = lineEnd + 1
    this.#begin = this.#at
    this.#searched = 0
    return true
  }

  /** Moves the rest of the input to its own buffer with `size` bytes. */
  #copy(size: number): void {
    const own = Buffer.allocUnsafeSlow(size)
    const rest = this.#input.copy(own, 0, this.#begin, this.#end)
    const moved = this.#begin
    this.#input = own
    this.#isOwn = true
    this.#begin = 0
    this.#end = rest
    this.#at -= moved
    this.#searched = Math.max(0, this.#searched - moved)
    for (let i = 0; i < this.#read; i++) {
      this.starts[i] = (this.starts[i] as number) - moved
      this.ends[i] = (this.ends[i] as number) - moved
    }
  }

  #use(input: Buffer, isOwn: boolean): void {
    this.#input = input
    this.#isOwn = isOwn
    this.#begin = 0
    this.#at = 0
    this.#end = input.length
    this.#searched = 0
  }
}

function printable(byte: number): string {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '?'
}

/** Integers with fewer digits are exact doubles. */
const EXACT_DIGITS = 15
const LEAST = -(2n ** 63n)
const MOST = 2n ** 63n - 1n

/** The decimal integer of 64 bits that the bytes spell, with an optional sign, rounded to a double; NaN if they spell none. */
function integerIn(bytes: Buffer, start: number, end: number): number {
  const sign = bytes[start]
  const first = start < end && (sign === MINUS || sign === PLUS) ? start + 1 : start
  if (first >= end) return Number.NaN
  let value = 0
  for (let at = first; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  if (end - first > EXACT_DIGITS) return roundedIn(bytes.toString('latin1', first, end), sign === MINUS)
  return sign === MINUS ? -value : value
}

function roundedIn(digits: string, isNegative: boolean): number {
  const value = isNegative ? -BigInt(digits) : BigInt(digits)
  return value < LEAST || value > MOST ? Number.NaN : Number(value)
}
