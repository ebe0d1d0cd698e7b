import { ByteReader, ByteWriter } from '../memory/byte-codec.js'
import { crc32 } from '../memory/snapshot/snapshot.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import type { CasStepState } from './cas-store.js'
import type { WriteId } from './write-ids.js'

// The value of a key in a store:
//
//   version 3 | write number | time of the last decision, microseconds | writes: count, then of each id 4 + 4 and how many have followed |
//   state | CRC-32 of all before it 4
//
// The state is that of the key under one policy (key-memory.ts), with no bytes when the key owes nothing. The writes are the last one of
// each of the last writers, the newest first: a process that lost the answer to a swap reads there whether it was made. An id is the writer
// and a count.

/** Values of version 1 had the words of the core. */
const VERSION = 3
/** Of a key whose state a store that computes has written: its numbers as text, see {@link CasStepState}. No swap writes it. */
export const STEPPED = 2
const CRC_BYTES = 4
/** Writers that a value remembers. */
const MOST_WRITES = 8

/** A write of a key: its id, and its number. */
export interface Write {
  readonly id: WriteId
  readonly number: number
}

/** A value, decoded. */
export interface StoredValue {
  /** Writes of this key since it came: the last one's number. */
  readonly number: number
  /** The store's time by which the last change was decided. */
  readonly decidedUs: number
  /** The last writes, the newest first. */
  readonly writes: readonly Write[]
  readonly state: Uint8Array
  /** In place of `state`. */
  readonly stepped?: SteppedState
}

/** What a store that computes has left of a key, and the time of its last step. */
export interface SteppedState extends CasStepState {
  readonly seen: number
}

/** What a key without a value has. */
export const NO_VALUE: StoredValue = { number: 0, decidedUs: 0, writes: [], state: new Uint8Array(0) }

export function encodedValue({ number, decidedUs, writes, state }: StoredValue): Uint8Array {
  const writer = new ByteWriter()
  const count = Math.min(writes.length, MOST_WRITES)
  writer.byte(VERSION)
  writer.whole(number)
  writer.whole(Math.max(0, decidedUs))
  writer.byte(count)
  for (let i = 0; i < count; i++) {
    const write = writes[i] as Write
    writer.word(write.id.writer)
    writer.word(write.id.count)
    writer.whole(number - write.number)
  }
  writer.block(state)
  writer.sum()
  return writer.written()
}

/** @throws {KeyFault} when a newer version wrote it, or it is damaged. */
export function decodedValue(bytes: Uint8Array | undefined): StoredValue {
  if (bytes === undefined) return NO_VALUE
  if (bytes instanceof Uint8Array && bytes[0] === STEPPED) return steppedIn(bytes)
  if (!(bytes instanceof Uint8Array) || bytes.length < CRC_BYTES + 1) throw damaged('is no value of a limiter')
  const end = bytes.length - CRC_BYTES
  if (crc32(bytes, end) !== new ByteReader(bytes, end).word()) throw damaged('is damaged: its checksum does not fit')
  if (bytes[0] !== VERSION) throw new KeyFault(`its value is of version ${bytes[0]}; this library reads version ${VERSION}`)
  try {
    const reader = new ByteReader(bytes, 1, end)
    const number = reader.whole()
    const decidedUs = reader.whole()
    const count = reader.byte()
    if (count > MOST_WRITES) throw new RangeError('has too many writes')
    const writes: Write[] = []
    for (let i = 0; i < count; i++) {
      const id = { writer: reader.word(), count: reader.word() }
      writes.push({ id, number: number - reader.whole() })
    }
    const state = reader.block()
    if (!reader.isOver) throw new RangeError('is too long')
    return { number, decidedUs, writes, state }
  } catch (error) {
    throw damaged(error instanceof Error ? error.message : String(error))
  }
}

/** What is thrown for a state that no limiter could have left. Never a fresh budget. */
export function damaged(how: string): KeyFault {
  return new KeyFault(`its value ${how}; reset() makes the key full`)
}

/** The writes after one more. A writer that writes one thing at a time needs only its last one. */
export function writesAfter({ writes, number }: StoredValue, id: WriteId): readonly Write[] {
  const after: Write[] = [{ id, number: number + 1 }]
  for (const write of writes) if (write.id.writer !== id.writer) after.push(write)
  return after
}

/**
 * Whether the write `id` made this value, or one before it that is remembered. Undefined: it may have, but more writers
 * have followed than are remembered. @param number that it would have.
 */
export function wasWritten({ writes }: StoredValue, { writer, count }: WriteId, number: number): boolean | undefined {
  if (writes.some(({ id }) => id.writer === writer && id.count === count)) return true
  const oldest = writes[MOST_WRITES - 1]
  return oldest === undefined || number >= oldest.number ? false : undefined
}

function steppedIn(bytes: Uint8Array): StoredValue {
  const numbers = new TextDecoder().decode(bytes.subarray(1)).split(' ').map(Number)
  if (numbers.length !== 8 || !numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) throw damaged('has no numbers')
  const [at = 0, rest = 0, unit = 0, pace = 0, cap = 0, ahead, blocked = 0, seen = 0] = numbers
  return { ...NO_VALUE, decidedUs: seen, stepped: { at, rest, unit, pace, cap, ahead: ahead === 1, blocked, seen } }
}
