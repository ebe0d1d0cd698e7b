import { PolicyError } from '../../errors.js'

// A snapshot: a description, and the bytes that it describes.
//
//   mark 8 bytes | version 4 | bytes of the description 4 | description, JSON | contents | CRC-32 of all before it 4
//
// Of one limiter the contents are its keys (assembly/table/saved-table.ts), of one with tiers whole snapshots (tiered-snapshot.ts).
// Numbers are little-endian, as the memory's are on every machine that runs WebAssembly.

const MARK = new TextEncoder().encode('SLUICEGT')
const VERSION = 2
const HEADER_BYTES = 16
const CRC_BYTES = 4

/** A snapshot that is whole. What it says of itself may still be wrong. */
export interface Snapshot {
  readonly description: Readonly<Record<string, unknown>>
  /** A view into the snapshot. */
  readonly contents: Uint8Array
}

/** A snapshot of what the contents are, one after another. */
export function encodedSnapshot(description: object, contents: readonly Uint8Array[]): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(description))
  const length = contents.reduce((sum, part) => sum + part.length, HEADER_BYTES + text.length)
  const bytes = new Uint8Array(length + CRC_BYTES)
  const view = new DataView(bytes.buffer)
  bytes.set(MARK)
  view.setUint32(8, VERSION, true)
  view.setUint32(12, text.length, true)
  let at = HEADER_BYTES
  for (const part of [text, ...contents]) {
    bytes.set(part, at)
    at += part.length
  }
  view.setUint32(length, crc32(bytes, length), true)
  return bytes
}

/**
 * Takes a snapshot apart.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID` when it is none, of another version, or damaged.
 */
export function decodedSnapshot(bytes: unknown): Snapshot {
  if (!(bytes instanceof Uint8Array) || bytes.length < HEADER_BYTES + CRC_BYTES || MARK.some((byte, i) => bytes[i] !== byte)) {
    throw invalidSnapshot('must be all the bytes that snapshot() gave', bytes)
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const version = view.getUint32(8, true)
  if (version !== VERSION) throw invalidSnapshot(`is of version ${version}; this library reads version ${VERSION}`, bytes)
  const end = bytes.length - CRC_BYTES
  if (crc32(bytes, end) !== view.getUint32(end, true)) throw invalidSnapshot('is damaged: its checksum does not fit', bytes)
  const textEnd = HEADER_BYTES + view.getUint32(12, true)
  if (textEnd > end) throw invalidSnapshot('says that it is longer than it is')
  return { description: parsed(bytes.subarray(HEADER_BYTES, textEnd)), contents: bytes.subarray(textEnd, end) }
}

/** What is thrown where a snapshot cannot be restored. */
export function invalidSnapshot(mend: string, snapshot?: unknown): PolicyError {
  return new PolicyError('SNAPSHOT_INVALID', 'snapshot', snapshot, mend)
}

function parsed(text: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(new TextDecoder().decode(text), withoutPrototype))
  } catch {
    throw invalidSnapshot('does not say what it is')
  }
}

/** What an object of a description lacks is undefined, whatever `Object.prototype` was polluted with. */
function withoutPrototype(_: string, value: unknown): unknown {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isRecord ? Object.setPrototypeOf(value, null) : value
}

const POLYNOMIAL = 0xedb88320

const REMAINDERS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ POLYNOMIAL : remainder >>> 1
  return remainder
})

/**
 * A checksum that notices damage, not malice: CRC-32 as in ISO 3309 and gzip.
 *
 * @example crc32(new TextEncoder().encode('123456789')) // 0xcbf43926
 */
export function crc32(bytes: Uint8Array, end = bytes.length): number {
  let crc = 0xffffffff
  for (let i = 0; i < end; i++) crc = (REMAINDERS[(crc ^ (bytes[i] as number)) & 0xff] as number) ^ (crc >>> 8)
  return (crc ^ 0xffffffff) >>> 0
}
