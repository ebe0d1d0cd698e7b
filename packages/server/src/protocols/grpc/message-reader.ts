import { GrpcError, STATUS } from './status.js'

/** Bytes before each message: whether it is compressed, and its length. */
const PREFIX_LENGTH = 5
const NOTHING = new Uint8Array()

/** Takes messages out of a stream of bytes that may be split anywhere; what is held is bounded by the size of one message. */
export class MessageReader {
  readonly #maxBytes: number
  /** The begin of a message in the first `#length` bytes; an own copy with room where more than one piece of it has come. */
  #held: Uint8Array = NOTHING
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of memory that a message without its end takes. */
  get heldBytes(): number {
    return this.#length === 0 ? 0 : this.#held.length
  }

  /** Whether a part of a message has arrived without its end. */
  get isInside(): boolean {
    return this.#length > 0
  }

  /**
   * Calls `take` with each message that `bytes` completes. It may keep the message.
   *
   * @throws {GrpcError} for a message that is too large or compressed.
   */
  read(bytes: Uint8Array, take: (message: Uint8Array) => void): void {
    let rest = this.#length === 0 ? bytes : this.#joined(bytes)
    const isJoined = this.#length > 0
    while (rest.length >= PREFIX_LENGTH) {
      const length = (rest[1] as number) * 0x100_0000 + (((rest[2] as number) << 16) | ((rest[3] as number) << 8) | (rest[4] as number))
      if (rest[0] !== 0) throw new GrpcError(STATUS.unimplemented, 'compressed messages are not supported: send identity')
      if (length > this.#maxBytes)
        throw new GrpcError(STATUS.resourceExhausted, `a message has at most ${this.#maxBytes} bytes, not ${length}`)
      const end = PREFIX_LENGTH + length
      if (rest.length < end) break
      take(rest.subarray(PREFIX_LENGTH, end))
      rest = rest.subarray(end)
    }
    // What was joined and completed no message stays where it is, with its room: each byte may come by itself.
    if (isJoined && rest.length === this.#length) return
    this.#held = rest.length > 0 ? rest : NOTHING
    this.#length = rest.length
  }

  /** `bytes` behind what is held. */
  #joined(bytes: Uint8Array): Uint8Array {
    const length = this.#length + bytes.length
    if (length > this.#held.length) {
      const roomy = new Uint8Array(2 * length)
      roomy.set(this.#held.subarray(0, this.#length))
      this.#held = roomy
    }
    this.#held.set(bytes, this.#length)
    this.#length = length
    return this.#held.subarray(0, length)
  }
}

/** A message with its prefix. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX_LENGTH + message.length)
  frame[0] = 0
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, PREFIX_LENGTH)
  return frame
}
