import { GrpcError, STATUS } from './status.js'

/** Types of fields in the wire format of Protocol Buffers. */
const WIRE = { varint: 0, fixed64: 1, bytes: 2, startGroup: 3, endGroup: 4, fixed32: 5 } as const

/** The tag of a field: its number and its wire type. */
export const varint = (field: number): number => field * 8 + WIRE.varint
export const bytes = (field: number): number => field * 8 + WIRE.bytes

const MAX_NESTED_GROUPS = 32

/** Reads the fields of a message one by one. A damaged message throws {@link GrpcError}. */
export class WireReader {
  readonly #bytes: Buffer
  #at = 0
  #end: number

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#end = bytes.length
  }

  /** The next field's number times 8, plus its wire type; 0 at the end of the message. */
  tag(): number {
    if (this.#at >= this.#end) return 0
    const tag = this.uint32()
    if (tag < 8) throw this.#damaged()
    return tag
  }

  /** A varint, cut to 32 bits as the format demands. */
  uint32(): number {
    const first = this.#byte()
    if (first < 0x80) return first
    let value = first & 0x7f
    for (let shift = 7; shift < 35; shift += 7) {
      const byte = this.#byte()
      if (shift < 32) value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value >>> 0
    }
    this.#skipVarint(5)
    return value >>> 0
  }

  /** A varint of 64 bits without sign; above 2^53 it is rounded. */
  uint64(): number {
    let value = 0
    for (let place = 0; place < 10; place++) {
      const byte = this.#byte()
      // Of the tenth byte one bit belongs to the number.
      value += (place === 9 ? byte & 1 : byte & 0x7f) * 2 ** (7 * place)
      if (byte < 0x80) return value
    }
    throw this.#damaged()
  }

  bool(): boolean {
    return this.uint64() !== 0
  }

  text(): string {
    const length = this.#length()
    const from = this.#at
    this.#at += length
    return length === 0 ? '' : this.#bytes.toString('utf8', from, this.#at)
  }

  /** Calls `read` with this reader, limited to the message that comes next. */
  message(read: (reader: WireReader) => void): void {
    const length = this.#length()
    const end = this.#end
    this.#end = this.#at + length
    read(this)
    this.#at = this.#end
    this.#end = end
  }

  /** Passes over a field that is not known. */
  skip(tag: number, depth = 0): void {
    switch (tag & 7) {
      case WIRE.varint:
        this.#skipVarint(0)
        return
      case WIRE.fixed64:
        this.#forward(8)
        return
      case WIRE.bytes:
        this.#skipBytes()
        return
      case WIRE.startGroup:
        this.#skipGroup(tag, depth)
        return
      case WIRE.fixed32:
        this.#forward(4)
        return
      default:
        throw this.#damaged()
    }
  }

  #skipGroup(tag: number, depth: number): void {
    if (depth >= MAX_NESTED_GROUPS) throw this.#damaged()
    for (;;) {
      const inner = this.tag()
      if (inner === 0) throw this.#damaged()
      if ((inner & 7) === WIRE.endGroup) {
        if (inner >>> 3 !== tag >>> 3) throw this.#damaged()
        return
      }
      this.skip(inner, depth + 1)
    }
  }

  #skipBytes(): void {
    // Before the sum: reading the length moves the position.
    const length = this.#length()
    this.#at += length
  }

  #skipVarint(read: number): void {
    for (let i = read; i < 10; i++) if (this.#byte() < 0x80) return
    throw this.#damaged()
  }

  #length(): number {
    const length = this.uint32()
    if (length > this.#end - this.#at) throw this.#damaged()
    return length
  }

  #forward(bytes: number): void {
    if (bytes > this.#end - this.#at) throw this.#damaged()
    this.#at += bytes
  }

  #byte(): number {
    if (this.#at >= this.#end) throw this.#damaged()
    return this.#bytes[this.#at++] as number
  }

  #damaged(): GrpcError {
    return new GrpcError(STATUS.invalidArgument, `the request is no message of this method: damaged at byte ${this.#at}`)
  }
}
