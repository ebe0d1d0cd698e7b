import { crc32 } from './crc32.js'
import { PolicyError } from './errors.js'

// A snapshot: what a limiter's memory holds, without the zeros.
//
//   mark 8 bytes | version 4 | bytes of the description 4 | description, JSON | pieces | CRC-32 of all before it 4
//   piece: place in memory, in units of 8 bytes, 4 | length in bytes, a multiple of 8, 4 | bytes
//
// Numbers are little-endian, as the memory's are on every machine that runs WebAssembly.

const MARK = 'SLUICEGT'
const VERSION = 1
const HEADER_BYTES = 16
const PIECE_HEADER_BYTES = 8
const CRC_BYTES = 4
const UNIT_BYTES = 8
/** Zeros that end a piece. */
const GAP_BYTES = 64

/** A part of the memory. */
export interface Piece {
  readonly address: number
  readonly bytes: Uint8Array
}

/** Writes a snapshot piece by piece. */
export class SnapshotWriter {
  private buffer = new Uint8Array(65_536)
  private length = 0

  constructor(description: object) {
    const text = new TextEncoder().encode(JSON.stringify(description))
    this.append(new TextEncoder().encode(MARK))
    this.number(VERSION)
    this.number(text.length)
    this.append(text)
  }

  /** Adds bytes that lie at `address`; runs of zeros are left out. */
  add(address: number, bytes: Uint8Array): void {
    const blocks = Math.ceil(bytes.length / GAP_BYTES)
    for (let first = 0; first < blocks; first++) {
      if (isZero(bytes, first)) continue
      let next = first + 1
      while (next < blocks && !isZero(bytes, next)) next++
      const piece = bytes.subarray(first * GAP_BYTES, Math.min(next * GAP_BYTES, bytes.length))
      this.number((address + first * GAP_BYTES) / UNIT_BYTES)
      this.number(piece.length)
      this.append(piece)
      first = next
    }
  }

  finish(): Uint8Array {
    this.number(crc32(this.buffer.subarray(0, this.length)))
    return this.buffer.slice(0, this.length)
  }

  private number(value: number): void {
    const bytes = new Uint8Array(4)
    new DataView(bytes.buffer).setUint32(0, value, true)
    this.append(bytes)
  }

  private append(bytes: Uint8Array): void {
    if (this.length + bytes.length > this.buffer.length) {
      const larger = new Uint8Array(Math.max(2 * this.buffer.length, this.length + bytes.length))
      larger.set(this.buffer.subarray(0, this.length))
      this.buffer = larger
    }
    this.buffer.set(bytes, this.length)
    this.length += bytes.length
  }
}

/**
 * What a snapshot says of itself, and its pieces.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID` when it is none, of another version, or damaged.
 */
export function readSnapshot(snapshot: unknown): { readonly description: unknown; readonly pieces: Iterable<Piece> } {
  if (!(snapshot instanceof Uint8Array) || snapshot.length < HEADER_BYTES + CRC_BYTES)
    throw invalid('must be the bytes that snapshot() gave')
  const view = new DataView(snapshot.buffer, snapshot.byteOffset, snapshot.byteLength)
  if (new TextDecoder().decode(snapshot.subarray(0, MARK.length)) !== MARK) throw invalid('must be the bytes that snapshot() gave')
  const version = view.getUint32(8, true)
  if (version !== VERSION) throw invalid(`is of version ${version}; this library reads version ${VERSION}`)
  const end = snapshot.length - CRC_BYTES
  if (crc32(snapshot.subarray(0, end)) !== view.getUint32(end, true)) throw invalid('is damaged: its checksum does not fit')
  const textEnd = HEADER_BYTES + view.getUint32(12, true)
  const description: unknown = JSON.parse(new TextDecoder().decode(snapshot.subarray(HEADER_BYTES, textEnd)))
  return { description, pieces: piecesOf(snapshot, view, textEnd, end) }
}

function* piecesOf(snapshot: Uint8Array, view: DataView, from: number, end: number): Iterable<Piece> {
  for (let at = from; at < end; ) {
    const address = view.getUint32(at, true) * UNIT_BYTES
    const length = view.getUint32(at + 4, true)
    const begin = at + PIECE_HEADER_BYTES
    yield { address, bytes: snapshot.subarray(begin, begin + length) }
    at = begin + length
  }
}

function invalid(mend: string): PolicyError {
  return new PolicyError('SNAPSHOT_INVALID', 'snapshot', undefined, mend)
}

function isZero(bytes: Uint8Array, block: number): boolean {
  const end = Math.min((block + 1) * GAP_BYTES, bytes.length)
  for (let i = block * GAP_BYTES; i < end; i++) if (bytes[i] !== 0) return false
  return true
}
