import { policyChanged } from "../host"
import {
  EPOCH, RECORD_BASE_US, RECORD_CAPACITY, RECORD_COUNT_BITS, RECORD_ENCODING, RECORD_ERA, RECORD_EXTENSIONS, RECORD_GENERATION,
  RECORD_REBASE_AT_US, RECORD_SLOTS, RECORD_STRIDE, RECORD_TICK_US, RECORD_UNITS_PER_TOKEN, RECORD_UNITS_PER_US,
  RECORD_WINDOW_US, base,
} from "../memory-map"
import { load } from "../atomics/atomics"
import { headOf, stateHead } from "../atomics/words"
import { ARRIVAL, BUCKET, FIXED } from "./encodings"
import { field, rangeOf, setField, recordAddress, sequenceIn, sequenceOf, ticksOfWindow } from "./policy-record"

// The policy in force: the epoch word names its record. Each thread keeps a copy of the record's numbers in these globals and
// compares the epoch word at each take.

export let epochWord: u64 = 0
export let epoch: u64 = 0
export let unitsPerUs: i64 = 1
export let unitsPerToken: i64 = 1
export let capacity: i64 = 1
export let encoding: i32 = 0
export let burst: i64 = 1
/** Windows and logs: the window in microseconds. */
export let windowUs: i64 = 0
/** Width of a count in a value. */
export let countBits: i64 = 0
/** Microseconds that one step of a value's number or time stands for. */
export let tickUs: i64 = 1
export let slots: i64 = 0
export let extensions: usize = 0
export let stride: usize = 0
export let era: i64 = 0
/** Another after each change of the numbers. */
export let generation: i64 = 0
/** Logs: ticks that guarantee that a window is over. */
export let windowTicks: i64 = 0
export let baseUs: i64 = 0
let rebaseAtUs: i64 = 0
let currentHead: u64 = 0

/**
 * The window located last, in microseconds since the base, and its number. It saves a division, or for calendars a call of the
 * host. A reload of the policy empties it.
 */
export let windowBeginUs: i64 = 0
export let windowEndUs: i64 = 0
export let windowNumber: i64 = 0

/** A window that began before the base has the number 0. */
@inline export function setWindow(beginUs: i64, endUs: i64): void {
  windowNumber = max<i64>(beginUs, 0) / tickUs
  windowBeginUs = beginUs
  windowEndUs = endUs
}

@inline export function setNumberedWindow(number: i64): void {
  windowNumber = number
  windowBeginUs = number * windowUs
  windowEndUs = windowBeginUs + windowUs
}

/** Brings this thread's copy up to date. Called after a state word was read, so no word is newer than the copy. */
@inline export function refresh(): void {
  if (load(base + EPOCH) != epochWord) reload()
}

function reload(): void {
  while (true) {
    const word = load(base + EPOCH)
    const record = recordAddress(sequenceOf(word))
    unitsPerUs = field(record, RECORD_UNITS_PER_US)
    unitsPerToken = field(record, RECORD_UNITS_PER_TOKEN)
    capacity = field(record, RECORD_CAPACITY)
    burst = capacity / unitsPerToken
    encoding = <i32>field(record, RECORD_ENCODING)
    windowUs = field(record, RECORD_WINDOW_US)
    countBits = field(record, RECORD_COUNT_BITS)
    tickUs = field(record, RECORD_TICK_US)
    slots = field(record, RECORD_SLOTS)
    extensions = <usize>field(record, RECORD_EXTENSIONS)
    stride = <usize>field(record, RECORD_STRIDE)
    era = field(record, RECORD_ERA)
    generation = field(record, RECORD_GENERATION)
    windowTicks = ticksOfWindow(windowUs, tickUs)
    baseUs = field(record, RECORD_BASE_US)
    rebaseAtUs = field(record, RECORD_REBASE_AT_US)
    epochWord = word
    epoch = word >> 32
    currentHead = stateHead(epoch)
    windowEndUs = 0
    policyChanged()
    if (isWhole()) return
  }
}

/** Says, where no other thread is, that nothing may come back of what was charged before. */
export function setGeneration(to: i64): void {
  if (generation == to) return
  setField(policyRecord(), RECORD_GENERATION, to)
  generation = to
  policyChanged()
}

/** Whether the numbers read from this thread's record belong together: no thread has begun to write another policy there since. */
export function isWhole(): bool {
  return sequenceIn(policyRecord()) == sequenceOf(epochWord)
}

/** Nothing to load, migrate or move first: the state is of the policy that this thread knows, which is in force at `nowUs`. */
@inline export function isOrdinary(state: u64, nowUs: i64): bool {
  return load(base + EPOCH) == epochWord && headOf(state) == currentHead && isWithinRange(nowUs)
}

/** Record of the policy in force, for JavaScript. */
export function policyRecord(): usize {
  return recordAddress(sequenceOf(epochWord))
}

/** Before the time base, time stands still. */
@inline export function standing(nowUs: i64): i64 {
  return max<i64>(nowUs, baseUs)
}

/** Microseconds since the time base. */
@inline export function sinceBase(nowUs: i64): i64 {
  return standing(nowUs) - baseUs
}

/** Whether a state word of this time base can hold a debt at `nowUs`. */
@inline export function isWithinRange(nowUs: i64): bool {
  return nowUs <= rebaseAtUs
}

/** The latest time up to `us` at which a state word of this time base can hold a debt. */
@inline export function withinRange(us: i64): i64 {
  return min<i64>(us, rebaseAtUs)
}

/** How far ahead of now a state word of this time base may safely lie, in microseconds. */
export function mostAheadUs(): i64 {
  if (encoding == FIXED) return rangeOf(policyRecord()) - (rebaseAtUs - baseUs) - 1
  // Nearly a quarter of the range lies beyond the time at which the base moves; a debt must also be exact in a double.
  return isRate() ? (rebaseAtUs - baseUs) / 8 : (rebaseAtUs - baseUs) / 4 - windowUs
}

/**
 * The latest time at which a saved key may lie. It is of the time base, not of now: a key that is loaded and saved while the clock is set back
 * is where it was when the clock is right again.
 */
export function latestUs(): i64 {
  return rebaseAtUs + mostAheadUs()
}

/** Whether each call brings its own rate; the window is then the longest tolerance. */
@inline export function isOfCalls(): bool {
  return encoding == ARRIVAL && windowUs != 0
}

/** Whether the policy is a bucket or GCRA. */
@inline export function isRate(): bool {
  return encoding <= BUCKET
}
