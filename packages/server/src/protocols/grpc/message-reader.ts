import { GrpcError, STATUS } from './status.js'

/** Bytes before each message: whether it is compressed, and its length. */
const PREFIX_LENGTH = 5

/** Takes messages out of a stream of bytes that may be split anywhere; what is held is bounded by the size of one message. */
export class MessageReader {
  readonly #maxBytes: number
  #held: Uint8Array | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Whether a part of a message has arrived without its end. */
  get isInside(): boolean {
    return this.#held !== undefined
  }

  /**
   * Calls `take` with each message that `bytes` completes. It may keep the message.
   *
   * @throws {GrpcError} for a message that is too large or compressed.
   */
  read(bytes: Uint8Array, take: (message: Uint8Array) => void): void {
    let rest = this.#held === undefined ? bytes : joined(this.#held, bytes)
    this.#held = undefined
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
    if (rest.length > 0) this.#held = rest
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

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
