import { pause } from "../host"
import {
  EPOCH, NEXT_SEQUENCE, RECORD_BASE_US, RECORD_CALENDAR, RECORD_COUNT, RECORD_COUNT_BITS, RECORD_ENCODING, RECORD_EPOCH, RECORD_ERA,
  RECORD_GENERATION, RECORD_KEEPS_DEBT, RECORD_NUMBER_BITS, RECORD_PREVIOUS, RECORD_REBASE_AT_US, RECORD_SEQUENCE, RECORD_SINCE_US, RECORD_STRIDE,
  RECORD_TICK_US, RECORD_UNITS_PER_US, RECORD_WINDOW_US, base,
} from "../memory-map"
import { add, load, store, swap } from "../atomics/atomics"
import { ARRIVAL } from "./encodings"
import { epoch, epochWord, policyRecord, refresh } from "./policy"
import { field, rangeOf, recordAddress, sequenceIn, sequenceOf, setField } from "./policy-record"

// Proposes and publishes a record: a change of policy, or of the time base, which is the same policy with a later base.

/** A range of no more windows moves on after an eighth of it, so that what is reserved in the next window still fits. */
const FEW_WINDOWS_BITS: i64 = 6

/** Consecutive policies whose time bases differ, unless a window is so long that there is no room for it. */
const MOST_APART: i64 = 4096

/** In a record's sequence number: a thread is writing. */
const WRITING: u64 = 1 << 32
/** Records of this many policies back are kept: state words lag by at most 7, and a thread that reads one may lag itself. */
const KEPT_EPOCHS: u64 = 16
/** Records tried, most of them with a pause, before those still being written count as abandoned: about half a second. */
const PATIENCE: i32 = 512

/** A record for this thread, to be filled and published. */
export function propose(): usize {
  let tries = -1
  while (true) {
    tries++
    if (tries >= RECORD_COUNT) pause(tries)
    const sequence = sequenceOf(add(base + NEXT_SEQUENCE, 1))
    const record = recordAddress(sequence)
    const before = load(record + RECORD_SEQUENCE)
    if ((before & WRITING) != 0 && tries < PATIENCE) continue
    const epochOfBlock = <u64>field(record, RECORD_EPOCH)
    if (epochOfBlock != 0 && (load(base + EPOCH) >> 32) < epochOfBlock + KEPT_EPOCHS) continue
    // Lost only to a thread that wants the same record, 64 sequence numbers later.
    if (swap(record + RECORD_SEQUENCE, before, sequence | WRITING)) return record
  }
}

/** Ends the writing of a record. */
export function closeRecord(record: usize): void {
  store(record + RECORD_SEQUENCE, sequenceIn(record))
}

/**
 * One attempt to succeed the policy that this thread knows. `keepsDebt`: debts stay exactly as they are, above a smaller burst
 * too.
 */
export function publish(record: usize, nowUs: i64, keepsDebt: bool): bool {
  const rangeUs = rangeOf(record)
  const tickUs = max<i64>(field(record, RECORD_TICK_US), 1)
  const longestUs = longestDebtOf(record)
  const behindUs = longestUs == 0 ? rangeUs / 2 : (rangeUs - longestUs) / 8
  const numberBits = field(record, RECORD_NUMBER_BITS)
  const isShort = numberBits != 0 && numberBits <= FEW_WINDOWS_BITS
  const aheadUs = longestUs == 0 ? rangeUs / (isShort ? 8 : 4) : rangeUs - longestUs - behindUs * 2
  setField(record, RECORD_BASE_US, wholeTicks(nowUs - behindUs, tickUs) - ticksApart(rangeUs, tickUs) * tickUs)
  setField(record, RECORD_REBASE_AT_US, nowUs + aheadUs)
  setField(record, RECORD_SINCE_US, nowUs)
  // A change of no number leaves a key exactly as it is, with all that is reserved ahead.
  setField(record, RECORD_KEEPS_DEBT, keepsDebt || (epoch != 0 && hasNumbersOf(record, policyRecord())) ? 1 : 0)
  const isNewNumbers = epoch != 0 && field(record, RECORD_KEEPS_DEBT) == 0
  setField(record, RECORD_GENERATION, epoch == 0 ? 0 : field(policyRecord(), RECORD_GENERATION) + (isNewNumbers ? 1 : 0))
  setField(record, RECORD_PREVIOUS, <i64>sequenceOf(epochWord))
  setField(record, RECORD_EPOCH, <i64>(epoch + 1))
  if (epoch != 0 && !keepsDebt) inherit(record, policyRecord())
  const next = ((epoch + 1) << 32) | sequenceIn(record)
  if (!swap(base + EPOCH, epochWord, next)) {
    refresh()
    return false
  }
  refresh()
  return true
}

/**
 * Ticks by which the base of the next policy lies farther back, another number for each policy. A state word has three bits of its
 * epoch. A thread that pauses for eight changes must not find the word that it had read, now as a word of another policy. What a
 * key has spent reads differently from each base.
 */
function ticksApart(rangeUs: i64, tickUs: i64): i64 {
  return <i64>(epoch + 1) % max<i64>(min<i64>(MOST_APART, rangeUs / 32 / tickUs), 1)
}

/** Whether the core reads the same numbers in both records. */
function hasNumbersOf(record: usize, other: usize): bool {
  for (let offset = RECORD_UNITS_PER_US; offset <= RECORD_STRIDE; offset += 8) {
    if (field(record, offset) != field(other, offset)) return false
  }
  return field(record, RECORD_CALENDAR) == field(other, RECORD_CALENDAR)
}

/** Where each call brings its rate: the longest debt that any may leave, for which the range must have room. Otherwise 0. */
@inline function longestDebtOf(record: usize): i64 {
  return field(record, RECORD_ENCODING) == ARRIVAL ? field(record, RECORD_WINDOW_US) : 0
}

@inline function wholeTicks(us: i64, tickUs: i64): i64 {
  const into = us % tickUs
  return us - (into < 0 ? into + tickUs : into)
}

/** Carries over what a policy of windows must know of the previous one. */
function inherit(record: usize, before: usize): void {
  const sameWindows = field(record, RECORD_WINDOW_US) == field(before, RECORD_WINDOW_US)
  const sameWords = field(record, RECORD_ENCODING) == field(before, RECORD_ENCODING) && field(record, RECORD_COUNT_BITS) == field(before, RECORD_COUNT_BITS)
  setField(record, RECORD_ERA, field(before, RECORD_ERA) + (sameWindows && sameWords ? 0 : 1))
}
