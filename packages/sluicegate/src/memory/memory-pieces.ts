import { invalidSnapshot } from './snapshot.js'

// Pieces of a memory without the zeros between them, each:
//
//   place in the memory, in units of 8 bytes, 4 | length in bytes, a multiple of 8, 4 | bytes
//
// What lies in two of them is as the later one says.

const HEADER_BYTES = 8
const UNIT_BYTES = 8
/** Zeros that end a piece. */
const GAP_BYTES = 64

/** Collects pieces. */
export class MemoryPieces {
  private buffer = new Uint8Array(65_536)
  private length = 0

  /** Adds bytes that lie at `address`; runs of zeros are left out. */
  add(address: number, bytes: Uint8Array): void {
    const blocks = Math.ceil(bytes.length / GAP_BYTES)
    for (let first = 0; first < blocks; first++) {
      if (isZero(bytes, first)) continue
      let next = first + 1
      while (next < blocks && !isZero(bytes, next)) next++
      this.append((address + first * GAP_BYTES) / UNIT_BYTES, bytes.subarray(first * GAP_BYTES, Math.min(next * GAP_BYTES, bytes.length)))
      first = next
    }
  }

  /** What was added: a view that stays as it is. */
  get bytes(): Uint8Array {
    return this.buffer.subarray(0, this.length)
  }

  private append(place: number, piece: Uint8Array): void {
    const end = this.length + HEADER_BYTES + piece.length
    if (end > this.buffer.length) {
      const larger = new Uint8Array(Math.max(2 * this.buffer.length, end))
      larger.set(this.bytes)
      this.buffer = larger
    }
    const header = new DataView(this.buffer.buffer, this.length)
    header.setUint32(0, place, true)
    header.setUint32(4, piece.length, true)
    this.buffer.set(piece, this.length + HEADER_BYTES)
    this.length = end
  }
}

/**
 * Puts collected pieces where they belong.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID` when one does not fit there.
 */
export function layPieces(pieces: Uint8Array, memory: Uint8Array): void {
  const view = new DataView(pieces.buffer, pieces.byteOffset, pieces.byteLength)
  for (let at = 0; at < pieces.length; ) {
    const begin = at + HEADER_BYTES
    if (begin > pieces.length) throw invalidSnapshot('ends within a piece of memory')
    const address = view.getUint32(at, true) * UNIT_BYTES
    const length = view.getUint32(at + 4, true)
    if (length % UNIT_BYTES !== 0 || begin + length > pieces.length || address + length > memory.length) {
      throw invalidSnapshot('holds a piece of memory that does not fit')
    }
    memory.set(pieces.subarray(begin, begin + length), address)
    at = begin + length
  }
}

function isZero(bytes: Uint8Array, block: number): boolean {
  const end = Math.min((block + 1) * GAP_BYTES, bytes.length)
  for (let i = block * GAP_BYTES; i < end; i++) if (bytes[i] !== 0) return false
  return true
}
