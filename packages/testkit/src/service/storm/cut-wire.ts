import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Random } from 'sluicegate-testkit'

/** No handshake and nothing that a client of a storm sends is longer, encrypted. */
const LONGEST_BYTES = 8_000

/**
 * The wire under an encrypted connection: bytes of the handshake and of records pass in pieces of any size, until one piece is changed or the wire is cut,
 * anywhere.
 */
export class CutWire extends Duplex {
  readonly #socket: Socket
  readonly #random: Random
  /** Bytes that still pass. */
  #left: number
  readonly #isChanging: boolean

  constructor(socket: Socket, random: Random) {
    super()
    this.#socket = socket
    this.#random = random
    this.#left = random.magnitude(1, LONGEST_BYTES)
    this.#isChanging = random.chance(0.3)
    socket.on('data', (bytes) => {
      if (!this.push(bytes)) socket.pause()
    })
    socket.once('close', () => this.destroy())
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    for (let at = 0; at < bytes.length && this.#left > 0; ) {
      const next = Math.min(bytes.length, at + (this.#random.chance(0.7) ? bytes.length : this.#random.magnitude(1, 400)))
      const piece = Buffer.from(bytes.subarray(at, Math.min(next, at + this.#left)))
      this.#left -= piece.length
      if (this.#left === 0 && this.#isChanging) {
        const place = this.#random.integer(0, piece.length - 1)
        piece[place] = (piece[place] ?? 0) ^ (1 << this.#random.integer(0, 7))
        // What follows the changed byte passes as it is.
        this.#left = LONGEST_BYTES * 2
      }
      this.#socket.write(piece)
      at = next
    }
    // The one that waits for an answer to what was cut goes on waiting, as a client on a dead network does.
    setImmediate(done)
  }

  override _final(done: () => void): void {
    this.#socket.end()
    done()
  }

  override _destroy(_error: Error | null, done: () => void): void {
    this.#socket.destroy()
    done()
  }
}
