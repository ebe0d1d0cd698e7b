import { onceInProcess } from '../once-in-process.js'
import { crc32 } from './snapshot/snapshot.js'

const NONE = new Uint8Array(0)
const MOST_WHOLE_BYTES = 8
const MOST_INT = 0x7fff_ffff
/** The buffer of the last writer: most values fit, and a new one costs more than what is written there. */
const last = /* @__PURE__ */ onceInProcess('written bytes', (): { spare?: Uint8Array | undefined } => ({}))

/** Writes numbers and bytes one after another. Whole numbers from 0 take 7 bits a byte, up to `Number.MAX_SAFE_INTEGER`. */
export class ByteWriter {
  private bytes: Uint8Array
  private length = 0

  constructor() {
    this.bytes = last.spare ?? new Uint8Array(1024)
    last.spare = undefined
  }

  byte(value: number): void {
    this.grown(1)
    this.bytes[this.length++] = value
  }

  whole(value: number): void {
    this.grown(MOST_WHOLE_BYTES)
    const { bytes } = this
    let at = this.length
    let rest = value
    while (rest > MOST_INT) {
      bytes[at++] = (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
    // What is left fits the operators of 32 bits, which are faster.
    let low = rest | 0
    while (low >= 0x80) {
      bytes[at++] = (low & 0x7f) | 0x80
      low >>>= 7
    }
    bytes[at++] = low
    this.length = at
  }

  /** 4 bytes, the lowest first. */
  word(value: number): void {
    this.grown(4)
    for (let shift = 0; shift < 32; shift += 8) this.bytes[this.length++] = value >>> shift
  }

  raw(bytes: Uint8Array): void {
    this.grown(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  /** Bytes behind their number. */
  block(bytes: Uint8Array): void {
    this.whole(bytes.length)
    this.raw(bytes)
  }

  text(text: string): void {
    this.block(new TextEncoder().encode(text))
  }

  /** What was written so far, and ends it: another writer may get its buffer. */
  written(): Uint8Array {
    const { bytes, length } = this
    last.spare = bytes
    this.bytes = NONE
    this.length = 0
    return bytes.slice(0, length)
  }

  /** The same, and goes on with this writer. */
  copied(): Uint8Array {
    return this.bytes.slice(0, this.length)
  }

  /** Forgets what was written behind the first bytes. */
  rewind(size: number): void {
    this.length = size
  }

  /** Bytes so far. */
  get size(): number {
    return this.length
  }

  /** CRC-32 of all so far. */
  sum(): void {
    this.word(crc32(this.bytes, this.length))
  }

  private grown(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more))
    larger.set(this.bytes)
    this.bytes = larger
  }
}

/** Reads what {@link ByteWriter} wrote. @throws {RangeError} when there is less. */
export class ByteReader {
  private readonly bytes: Uint8Array
  private readonly end: number
  private at: number

  constructor(bytes: Uint8Array, begin = 0, end = bytes.length) {
    this.bytes = bytes
    this.at = begin
    this.end = end
  }

  byte(): number {
    if (this.at >= this.end) throw new RangeError('ends too early')
    return this.bytes[this.at++] as number
  }

  /** 4 bytes, the lowest first; from 0. */
  word(): number {
    let value = 0
    for (let shift = 0; shift < 32; shift += 8) value |= this.byte() << shift
    return value >>> 0
  }

  whole(): number {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.byte()
      value += (byte % 0x80) * scale
      if (value > Number.MAX_SAFE_INTEGER) throw new RangeError('has a number that is too large')
      if (byte < 0x80) return value
    }
  }

  /** The same, or `other` when there is none. */
  wholeOr(other: number): number {
    let value = 0
    let scale = 1
    for (let at = this.at; at < this.end; at++) {
      const byte = this.bytes[at] as number
      value += (byte % 0x80) * scale
      if (value > Number.MAX_SAFE_INTEGER) return other
      scale *= 0x80
      if (byte >= 0x80) continue
      this.at = at + 1
      return value
    }
    return other
  }

  /** A view of the next bytes. */
  raw(length: number): Uint8Array {
    if (this.at + length > this.end) throw new RangeError('ends too early')
    const view = this.bytes.subarray(this.at, this.at + length)
    this.at += length
    return view
  }

  /** A view of all that follows. */
  rest(): Uint8Array {
    return this.raw(this.end - this.at)
  }

  block(): Uint8Array {
    return this.raw(this.whole())
  }

  text(): string {
    return new TextDecoder().decode(this.block())
  }

  /** Where the next byte is. */
  get place(): number {
    return this.at
  }

  /** Reads on from another place. */
  seek(place: number): void {
    this.at = place
  }

  get isOver(): boolean {
    return this.at === this.end
  }
}

/** Whether two byte strings are the same. */
export function areSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
