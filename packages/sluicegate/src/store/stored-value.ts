import { crc32 } from '../memory/snapshot/snapshot.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import { ByteReader, ByteWriter } from './byte-codec.js'

// The value of a key in a store:
//
//   version 1 | write number | time of the last decision, microseconds | writes: count, 8 bytes each | state | CRC-32 of all before it 4
//
// The state is that of the key under one policy (key-memory.ts), with no bytes when the key owes nothing. The writes are the ids of the last
// ones, the newest first: who lost the answer to a swap reads there whether it was made.

const VERSION = 1
const CRC_BYTES = 4
/** Bytes of a write's id. */
export const ID_BYTES = 8
/** Ids of writes that a value remembers. A write that more have followed is unknown. */
export const MOST_WRITES = 8

/** A value, decoded. */
export interface StoredValue {
  /** Writes of this key since it came: the last one's number. */
  readonly number: number
  /** The store's time by which the last change was decided. */
  readonly decidedUs: number
  /** Ids of the last writes, the newest first. */
  readonly writes: readonly Uint8Array[]
  readonly state: Uint8Array
}

/** What a key without a value has. */
export const NO_VALUE: StoredValue = { number: 0, decidedUs: 0, writes: [], state: new Uint8Array(0) }

export function encodedValue({ number, decidedUs, writes, state }: StoredValue): Uint8Array {
  const writer = new ByteWriter()
  writer.byte(VERSION)
  writer.whole(number)
  writer.whole(Math.max(0, decidedUs))
  writer.byte(Math.min(writes.length, MOST_WRITES))
  for (const id of writes.slice(0, MOST_WRITES)) writer.raw(id)
  writer.block(state)
  const body = writer.written()
  const bytes = new Uint8Array(body.length + CRC_BYTES)
  bytes.set(body)
  new DataView(bytes.buffer).setUint32(body.length, crc32(body), true)
  return bytes
}

/** @throws {KeyFault} when a newer version wrote it, or it is damaged. */
export function decodedValue(bytes: Uint8Array | undefined): StoredValue {
  if (bytes === undefined) return NO_VALUE
  if (!(bytes instanceof Uint8Array) || bytes.length < CRC_BYTES + 1) throw damaged('is no value of a limiter')
  const end = bytes.length - CRC_BYTES
  const sum = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(end, true)
  if (crc32(bytes.subarray(0, end)) !== sum) throw damaged('is damaged: its checksum does not fit')
  if (bytes[0] !== VERSION) throw new KeyFault(`its value is of version ${bytes[0]}; this library reads version ${VERSION}`)
  try {
    const reader = new ByteReader(bytes.subarray(1, end))
    const number = reader.whole()
    const decidedUs = reader.whole()
    const count = reader.byte()
    if (count > MOST_WRITES) throw new RangeError('has too many writes')
    const writes = Array.from({ length: count }, () => reader.raw(ID_BYTES))
    const state = reader.block()
    if (!reader.isOver) throw new RangeError('is too long')
    return { number, decidedUs, writes, state }
  } catch (error) {
    throw damaged(error instanceof Error ? error.message : String(error))
  }
}

/** What is thrown for a state that no limiter could have left. Never a fresh budget. */
export function damaged(how: string): KeyFault {
  return new KeyFault(`its value ${how}; reset() begins it anew`)
}

/** Whether the write `id` made this value, or one of the last before it; `undefined`: more have followed since number `before`. */
export function wasWritten({ writes, number }: StoredValue, id: Uint8Array, before: number): boolean | undefined {
  if (writes.some((each) => each.every((byte, i) => byte === id[i]))) return true
  return number - before <= writes.length ? false : undefined
}
