import { endOf, slotUs } from '../../holds/hold-ends.js'
import { ByteReader, ByteWriter } from '../../memory/byte-codec.js'

// What is held of a key, in the state that a store has of it. A state without holds is that of the key alone (key-memory.ts), which begins
// with a whole number, and that never with these two bytes:
//
//   128 0 | state of the key, a block | slots: count, then of each its end, held and granted tokens | records: count, then of each 16 bytes and
//   its numbers

/** Of the longest time to live: a hold that ends later was written under a clock that was ahead, and ends now. */
const LONGEST_HOLD_US = 200_000_000_000
const MARK = [0x80, 0] as const
const ID_BYTES = 16
/** Records of a key: an open beyond that is denied. */
export const MOST_RECORDS = 1_000
const NOTHING = new Uint8Array(0)

/** Tokens whose holds end together. */
export interface HeldSlot {
  readonly us: number
  held: number
  granted: number
}

/** What is remembered of a hold under its id, as its last step left it. */
export interface KeptHold {
  call: number
  isClosed: boolean
  isDone: boolean
  rest: number
  granted: number
  us: number
  over: number
  used: number
  ttlUs: number
  isDebt: boolean
  waits: boolean
  /** `Infinity`: no bound. */
  most: number
}

/** What is held of one key, by the time at which it ends (ADR 26). Twin of `lua/steps/holds.lua`. */
export class StoredHolds {
  readonly slots: HeldSlot[] = []
  readonly records = new Map<string, KeptHold>()

  /** In all slots. */
  get total(): number {
    let total = 0
    for (const { held, granted } of this.slots) total += held + granted
    return total
  }

  /** Of a hold that ends then. */
  slotAt(us: number): HeldSlot | undefined {
    return this.slots.find((slot) => slot.us === us)
  }

  /** Adds to the slot that ends at a time, or takes from it; what is not there cannot be taken. */
  move(us: number, held: number, granted: number): void {
    if (held === 0 && granted === 0) return
    let at = this.slots.findIndex((slot) => slot.us >= us)
    if (at === -1) at = this.slots.length
    if (this.slots[at]?.us !== us) this.slots.splice(at, 0, { us, held: 0, granted: 0 })
    const slot = this.slots[at] as HeldSlot
    slot.held = Math.max(0, slot.held + held)
    slot.granted = Math.max(0, slot.granted + granted)
    if (slot.held + slot.granted === 0) this.slots.splice(at, 1)
  }

  /** Drops the slots that have ended, and records for which nobody will ask. Those of granted tokens are to be charged, as of their end. */
  ended(nowUs: number): readonly HeldSlot[] {
    for (const [id, { us, ttlUs }] of this.records) if (Math.max(us, 0) + ttlUs <= nowUs) this.records.delete(id)
    const over = this.slots.filter(({ us }) => us <= nowUs || us > nowUs + LONGEST_HOLD_US)
    if (over.length === 0) return over
    const kept = this.slots.filter((slot) => !over.includes(slot))
    this.slots.splice(0, this.slots.length, ...kept)
    return over.filter(({ granted }) => granted > 0)
  }

  /** What is still held from each time on, the present first. What is granted stays until it is charged. */
  *falls(nowUs: number): Generator<readonly [fromUs: number, held: number]> {
    let { total } = this
    yield [nowUs, total]
    for (const { us, held } of this.slots) {
      total -= held
      yield [us, total]
    }
  }

  /** When nothing of it matters any more. */
  get lastUs(): number {
    let last = this.slots[this.slots.length - 1]?.us ?? 0
    for (const { us, ttlUs } of this.records.values()) last = Math.max(last, us + ttlUs)
    return last
  }
}

/** The end of a hold that was renewed at `nowUs`. */
export function storedEnd(nowUs: number, ttlUs: number): number {
  return endOf(nowUs, ttlUs, slotUs(ttlUs))
}

/** The state of a key with what is held of it. */
export function withHolds(state: Uint8Array, { slots, records }: StoredHolds): Uint8Array {
  if (slots.length === 0 && records.size === 0) return state
  const writer = new ByteWriter()
  for (const byte of MARK) writer.byte(byte)
  writer.block(state)
  writer.whole(slots.length)
  for (const { us, held, granted } of slots) for (const number of [us, held, granted]) writer.whole(number)
  writer.whole(records.size)
  for (const [id, { call, isClosed, isDone, rest, granted, us, over, used, ttlUs, isDebt, waits, most }] of records) {
    for (let i = 0; i < ID_BYTES; i++) writer.byte(Number.parseInt(id.slice(2 * i, 2 * i + 2), 16))
    const hasMost = most < Number.POSITIVE_INFINITY
    const flags = [isClosed, isDone, isDebt, hasMost, waits].reduce((bits, flag, i) => bits + (flag ? 2 ** i : 0), 0)
    for (const number of [call, flags, rest, granted, us, over, used, ttlUs]) writer.whole(number)
    if (hasMost) writer.whole(most)
  }
  return writer.written()
}

/** The state of the key alone, and what is held of it. @throws {RangeError} */
export function holdsIn(state: Uint8Array): readonly [state: Uint8Array, holds: StoredHolds] {
  const holds = new StoredHolds()
  if (!MARK.every((byte, i) => state[i] === byte)) return [state, holds]
  const reader = new ByteReader(state, MARK.length)
  const own = reader.block()
  for (let left = reader.whole(); left > 0; left--) holds.move(reader.whole(), reader.whole(), reader.whole())
  const count = reader.whole()
  if (count > MOST_RECORDS) throw new RangeError('has too many records')
  for (let left = count; left > 0; left--) {
    let id = ''
    for (let i = 0; i < ID_BYTES; i++) id += reader.byte().toString(16).padStart(2, '0')
    const [call, flags] = [reader.whole(), reader.whole()]
    const [rest, granted, us] = [reader.whole(), reader.whole(), reader.whole()]
    const [over, used, ttlUs] = [reader.whole(), reader.whole(), reader.whole()]
    const most = (flags & 8) !== 0 ? reader.whole() : Number.POSITIVE_INFINITY
    const [isClosed, isDone, isDebt, waits] = [1, 2, 4, 16].map((bit) => (flags & bit) !== 0) as [boolean, boolean, boolean, boolean]
    holds.records.set(id, { call, isClosed, isDone, rest, granted, us, over, used, ttlUs, isDebt, waits, most })
  }
  if (!reader.isOver) throw new RangeError('is too long')
  return [own.length === 0 ? NOTHING : own, holds]
}
