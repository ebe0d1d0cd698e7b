const FIRST_BYTES = 1_024

/** Writes a message field by field. A writer is used again and again: {@link WireWriter.take} copies what was written. */
export class WireWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #at = 0

  /** A varint field of at most 2^53; left out when it is 0, as the format demands. */
  uint(tag: number, value: number): void {
    if (value === 0) return
    this.#room(16)
    this.#varint(tag)
    this.#varint(value)
  }

  /** A varint field of a oneof, which is written when it is 0 as well. */
  choice(tag: number, value: number): void {
    this.#room(16)
    this.#varint(tag)
    this.#varint(value)
  }

  /** A text field; left out when it is empty. */
  text(tag: number, text: string): void {
    if (text === '') return
    this.#room(16 + 3 * text.length)
    this.#varint(tag)
    const at = this.#at++
    this.#at += this.#bytes.write(text, this.#at)
    this.#setLength(at)
  }

  /** A bytes field, or a message that is written already. */
  bytes(tag: number, bytes: Uint8Array): void {
    this.#room(16 + bytes.length)
    this.#varint(tag)
    this.#varint(bytes.length)
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** Begins a message in a field; the result goes to {@link WireWriter.end}. */
  begin(tag: number): number {
    this.#room(16)
    this.#varint(tag)
    return this.#at++
  }

  end(begun: number): void {
    this.#room(16)
    this.#setLength(begun)
  }

  /** What was written, in bytes of its own. */
  take(): Uint8Array {
    const written = Uint8Array.prototype.slice.call(this.#bytes, 0, this.#at)
    this.#at = 0
    return written
  }

  /** Writes the length of what follows `at`, where one byte was left for it. */
  #setLength(at: number): void {
    const length = this.#at - at - 1
    if (length < 0x80) {
      this.#bytes[at] = length
      return
    }
    const more = length < 0x4000 ? 1 : length < 0x20_0000 ? 2 : 3
    this.#bytes.copyWithin(at + 1 + more, at + 1, this.#at)
    this.#at = at
    this.#varint(length)
    this.#at += length
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.#at++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.#at++] = rest
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * (this.#at + bytes))
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
