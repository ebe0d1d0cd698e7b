import type { Policy } from '../../policy/policy.js'
import { type Encoding, numbersOf, type PolicyNumbers } from '../../policy/policy-numbers.js'
import type { OpenCore } from '../open-core.js'
import { isBanEntry, isMark, isOccupied, isOfEpoch, kindOf, MARKED_ENTRY, STATE_KIND } from './section-words.js'

// The numbers that the core adds to a policy record when it is published: see `publish` and `rangeOf` in assembly/policy/publish.ts.

const ARRIVAL_UNITS = 1n << 56n
const LONGEST_US = 1n << 54n
const MOST_APART = 4096n
/** No time and no count in a record is larger: all are exact in a double. */
const MOST = Number.MAX_SAFE_INTEGER
const MOST_EPOCH = 2 ** 30
const VALUE_BITS = 56
/** More than any policy needs. */
const MOST_SLOTS = 2 ** 17
/** The width of a cost in the header of a log. */
const MOST_COUNT_BITS = 21

/** Whether all numbers of a restored record are those that a core would have written for the policy. */
export function isRecordOf(open: OpenCore, record: number, policy: Policy, written: PolicyNumbers): boolean {
  return areNumbersOf(policy, written) && isPublished(open, record, written)
}

function areNumbersOf(policy: Policy, written: PolicyNumbers): boolean {
  // A log or a semaphore may have kept more room than it needs; then its policy still fits there, and moves nothing.
  const expected = numbersOf(policy, written)
  return isLaidOut(written) && (Object.keys(expected) as (keyof PolicyNumbers)[]).every((name) => expected[name] === written[name])
}

/** Whether the room of a key is as large as its slots need; where a policy keeps the room of another, that may be any. */
function isLaidOut({ encoding, countBits, numberBits, slots, slotBytes, stride }: PolicyNumbers): boolean {
  if (encoding === 'CONCURRENCY') return slots >= 1 && slots <= MOST_SLOTS && stride === 8 * slots
  if (encoding !== 'LOG') return true
  const areSlots = slots >= 1 && slots <= MOST_SLOTS && stride === 8 + 8 * Math.ceil((slots * slotBytes) / 8)
  return areSlots && countBits >= 1 && countBits <= MOST_COUNT_BITS && countBits + numberBits === VALUE_BITS
}

function isPublished(open: OpenCore, record: number, { encoding, numberBits, unitsPerUs, tickUs }: PolicyNumbers): boolean {
  const field = (name: string): number => open.field(record, name)
  // A number that is no encoding would be read as the first.
  if (field('RECORD_ENCODING') !== open.constant(encoding)) return false
  const [sinceUs, epoch, era] = ['RECORD_SINCE_US', 'RECORD_EPOCH', 'RECORD_ERA'].map(field) as [number, number, number]
  if (![sinceUs, epoch, era].every((number) => Math.abs(number) <= MOST) || era < 0) return false
  if (epoch !== open.epoch() || epoch > MOST_EPOCH || field('RECORD_KEEPS_DEBT') >>> 1 !== 0) return false
  const rangeUs = rangeOf(numberBits, unitsPerUs, tickUs)
  const tick = BigInt(Math.max(tickUs, 1))
  const nowUs = BigInt(sinceUs)
  const apart = BigInt(epoch) % larger(smaller(MOST_APART, rangeUs / 32n / tick), 1n)
  const baseUs = wholeTicks(nowUs - rangeUs / 2n, tick) - apart * tick
  // These may be further off than a double can tell.
  const exactly = (name: string): bigint => new DataView(open.memory.buffer, record).getBigInt64(open.constant(name), true)
  return exactly('RECORD_BASE_US') === baseUs && exactly('RECORD_REBASE_AT_US') === nowUs + rangeUs / 4n
}

/** For how many microseconds a time base lasts. */
function rangeOf(numberBits: number, unitsPerUs: number, tickUs: number): bigint {
  if (numberBits === 0) return ARRIVAL_UNITS / BigInt(unitsPerUs)
  const bits = BigInt(numberBits)
  const tick = BigInt(tickUs)
  return tick >= LONGEST_US >> bits ? LONGEST_US - (LONGEST_US % tick) : tick << bits
}

function wholeTicks(us: bigint, tick: bigint): bigint {
  const into = us % tick
  return us - (into < 0n ? into + tick : into)
}

function smaller(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

function larger(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}

/** A table that was restored, and what its words have to fit. */
export interface RestoredTable {
  readonly memory: WebAssembly.Memory
  /** Of the first entry, and where the table ends. */
  readonly address: number
  readonly end: number
  readonly epoch: number
  readonly numbers: PolicyNumbers
  /** Of the extensions of the first entry. */
  readonly extensions: number
}

const ENTRY_BYTES = 16
const VALUE_MASK = (1n << BigInt(VALUE_BITS)) - 1n
const MARKED = new BigUint64Array(MARKED_ENTRY.buffer)[1]
/** Of a log's header: see assembly/algorithms/log-ring.ts. */
const COST_BITS = 21n
const PLACE_BITS = 17n
const PLACE_MASK = (1n << PLACE_BITS) - 1n
const COST_MASK = (1n << COST_BITS) - 1n
/** Of a semaphore's state: how long a reading is written in a value, and for how long a permit may still run. */
const TURN_BITS = 9n
/** Bits of a value below the number of its window, or below its time; the others write a time, or a sum of units, alone. */
const BELOW_NUMBER: Partial<Record<Encoding, bigint>> = { SLIDING: 32n, COMPACT: 36n }

/**
 * Looks at every word of a restored table by which the core decides where to read and how often to go round: nothing may be under way, all has
 * to be of the policy in force, no time may lie where none can, and no ring may be longer than it is, or say that it holds another cost than its
 * newest request does. How much a key has spent is not looked at. What belongs to no key is cleared.
 *
 * @returns how many keys and records live there; undefined when a word is none that a core could have left.
 */
export function occupiedEntries(table: RestoredTable): number | undefined {
  const words = new BigUint64Array(table.memory.buffer)
  const halves = new Uint32Array(table.memory.buffer)
  const { stride } = table.numbers
  const clear = (from: number, entries: number): void => clearHalves(halves, from * 2, from * 2 + (entries * stride) / 4)
  const isValue = valueCheck(table.numbers)
  let occupied = 0
  for (let address = table.address, place = 0; address < table.end; address += ENTRY_BYTES, place++) {
    // Most of a table was never used: that is passed over in one go, as a big integer for each of its words takes long.
    const unused = unusedEntries(halves, address / 4, table.end / 4)
    if (unused > 0) {
      clear((table.extensions + place * stride) / 8, unused)
      address += (unused - 1) * ENTRY_BYTES
      place += unused - 1
      continue
    }
    const identity = words[address / 8] as bigint
    const state = words[address / 8 + 1] as bigint
    const extensions = (table.extensions + place * stride) / 8
    if (state === 0n || isMark(state)) {
      if (state === 0n ? isOccupied(identity) : state !== MARKED || identity !== 0n) return undefined
      clear(extensions, 1)
      continue
    }
    const high = Number(state >> 32n)
    if (kindOf(high) !== STATE_KIND || !isOfEpoch(high, table.epoch)) return undefined
    if (isBanEntry(Number(identity & 0xffff_ffffn))) clear(extensions, 1)
    else if (!isValue(state & VALUE_MASK) || !areExtensions(words, extensions, table.numbers)) return undefined
    if (isOccupied(identity)) occupied++
  }
  return occupied
}

/** Writes only where there is something: memory that was never written takes no room. */
function clearHalves(halves: Uint32Array, from: number, to: number): void {
  let at = from
  while (at < to && halves[at] === 0) at++
  if (at < to) halves.fill(0, at, to)
}

/** How many entries without a single bit stand from `first` on; in words of 32 bits. */
function unusedEntries(halves: Uint32Array, first: number, end: number): number {
  let at = first
  while (at < end && halves[at] === 0 && halves[at + 1] === 0 && halves[at + 2] === 0 && halves[at + 3] === 0) at += 4
  return (at - first) / 4
}

/** Whether the number of a window, or a time, lies within what a time base lasts for. */
function valueCheck({ encoding, countBits, numberBits, unitsPerUs, tickUs }: PolicyNumbers): (value: bigint) => boolean {
  if (encoding === 'ARRIVAL' || encoding === 'BUCKET') return () => true
  const rangeUs = rangeOf(numberBits, unitsPerUs, tickUs)
  if (encoding === 'CONCURRENCY') return (value) => value >> TURN_BITS <= rangeUs
  const most = rangeUs / BigInt(tickUs)
  const below = BELOW_NUMBER[encoding] ?? BigInt(countBits)
  const mask = encoding === 'WIDE' ? VALUE_MASK >> 1n : VALUE_MASK
  return (value) => (value & mask) >> below <= most
}

function areExtensions(words: BigUint64Array, first: number, { encoding, slots, slotBytes, countBits, stride }: PolicyNumbers): boolean {
  if (stride === 0) return true
  const head = words[first] as bigint
  if (encoding === 'WIDE') return head >> 62n === 0n
  if (encoding === 'LOG') {
    const held = Number((head >> COST_BITS) & PLACE_MASK)
    const place = Number((head >> (COST_BITS + PLACE_BITS)) & PLACE_MASK)
    if (head >> 62n !== 0n || held > slots || place >= slots) return false
    // In slots of 4 bytes the costs are not written: they follow from the header.
    if (slotBytes === 4) return true
    const newest = held === 0 ? 0n : (words[first + 1 + place] as bigint) & ((1n << BigInt(countBits)) - 1n)
    return (head & COST_MASK) === newest
  }
  for (let slot = 0; slot < slots; slot++) if ((words[first + slot] as bigint) >> 63n !== 0n) return false
  return true
}
