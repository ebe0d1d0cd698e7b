import type { Form, PolicyNumbers } from '../../policy/policy-numbers.js'
import { rangeOf } from './policy-record-check.js'
import { isBanEntry, isMark, isOccupied, isOfEpoch, kindOf, MARKED_ENTRY, STATE_KIND } from './section-words.js'

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
const VALUE_BITS = 56n
const VALUE_MASK = (1n << VALUE_BITS) - 1n
const MARKED = new BigUint64Array(MARKED_ENTRY.buffer)[1]
/** Of a log's header: see assembly/algorithms/log-ring.ts. */
const COST_BITS = 21n
const PLACE_BITS = 17n
const PLACE_MASK = (1n << PLACE_BITS) - 1n
/** Of a semaphore's state: how long a reading is written in a value, and for how long a permit may still run. */
const TURN_BITS = 9n
/** Bits of a value below the number of its window, or below its time; the others write a time, or a sum of units, alone. */
const BELOW_NUMBER: Partial<Record<Form, bigint>> = { SLIDING: 32n, COMPACT: 36n }

/**
 * Looks at every word of a restored table by which the core decides where to read and how often to go round: nothing may be under way, all has
 * to be of the policy in force, no time may lie where none can, and no ring may be longer than it is. How much a key has spent is not looked at.
 *
 * @returns how many keys and records live there; undefined when a word is none that a core could have left.
 */
export function occupiedEntries(table: RestoredTable): number | undefined {
  const words = new BigUint64Array(table.memory.buffer)
  const { stride } = table.numbers
  const isValue = valueCheck(table.numbers)
  let occupied = 0
  for (let address = table.address, place = 0; address < table.end; address += ENTRY_BYTES, place++) {
    const identity = words[address / 8] as bigint
    const state = words[address / 8 + 1] as bigint
    if (state === 0n) {
      if (isOccupied(identity)) return undefined
      continue
    }
    if (isMark(state)) {
      if (state !== MARKED || identity !== 0n) return undefined
      continue
    }
    const high = Number(state >> 32n)
    if (kindOf(high) !== STATE_KIND || !isOfEpoch(high, table.epoch)) return undefined
    const isBan = isBanEntry(Number(identity & 0xffff_ffffn))
    if (!isBan && !isValue(state & VALUE_MASK)) return undefined
    if (!isBan && stride > 0 && !areExtensions(words, (table.extensions + place * stride) / 8, table.numbers)) return undefined
    if (isOccupied(identity)) occupied++
  }
  return occupied
}

/** Whether the number of a window, or a time, lies within what a time base lasts for. */
function valueCheck({ form, countBits, numberBits, unitsPerUs, tickUs }: PolicyNumbers): (value: bigint) => boolean {
  if (form === 'ARRIVAL' || form === 'BUCKET') return () => true
  const rangeUs = rangeOf(numberBits, unitsPerUs, tickUs)
  if (form === 'CONCURRENCY') return (value) => value >> TURN_BITS <= rangeUs
  const most = rangeUs / BigInt(tickUs)
  const below = BELOW_NUMBER[form] ?? BigInt(countBits)
  const mask = (1n << (form === 'WIDE' ? VALUE_BITS - 1n : VALUE_BITS)) - 1n
  return (value) => (value & mask) >> below <= most
}

function areExtensions(words: BigUint64Array, first: number, { form, slots }: PolicyNumbers): boolean {
  const head = words[first] as bigint
  if (form === 'WIDE') return head >> 62n === 0n
  if (form === 'LOG') {
    const held = Number((head >> COST_BITS) & PLACE_MASK)
    const place = Number((head >> (COST_BITS + PLACE_BITS)) & PLACE_MASK)
    return head >> 62n === 0n && held <= slots && place < slots
  }
  for (let slot = 0; slot < slots; slot++) if ((words[first + slot] as bigint) >> 63n !== 0n) return false
  return true
}
