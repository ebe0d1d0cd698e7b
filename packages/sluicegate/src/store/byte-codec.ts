/** Writes numbers and bytes one after another. Whole numbers from 0 take 7 bits a byte, up to `Number.MAX_SAFE_INTEGER`. */
export class ByteWriter {
  private bytes = new Uint8Array(256)
  private length = 0

  byte(value: number): void {
    this.grown(1)
    this.bytes[this.length++] = value
  }

  whole(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 0x80) + 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.byte(rest)
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

  /** @param room zeros behind it. */
  written(room = 0): Uint8Array {
    this.grown(room)
    return this.bytes.slice(0, this.length + room)
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
  private at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  byte(): number {
    const byte = this.bytes[this.at++]
    if (byte === undefined) throw new RangeError('ends too early')
    return byte
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

  /** A view of the next bytes. */
  raw(length: number): Uint8Array {
    if (this.at + length > this.bytes.length) throw new RangeError('ends too early')
    const view = this.bytes.subarray(this.at, this.at + length)
    this.at += length
    return view
  }

  block(): Uint8Array {
    return this.raw(this.whole())
  }

  text(): string {
    return new TextDecoder().decode(this.block())
  }

  get isOver(): boolean {
    return this.at === this.bytes.length
  }
}

/** Whether two byte strings are the same. */
export function areSame(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false
  return true
}
