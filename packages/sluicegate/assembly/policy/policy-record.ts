import {
  RECORDS, RECORD_COUNT, RECORD_NUMBER_BITS, RECORD_SEQUENCE, RECORD_SIZE, RECORD_TICK_US, RECORD_UNITS_PER_US, base,
} from "../memory-map"

// A policy in shared memory. One thread writes a record: the one that has put its sequence number there. It does so before it
// publishes the record by a swap of the epoch word. A record is not reused while its writer is at work, however long that pauses,
// nor while a state word may need it. If a writer dies, its record, one of 64, stays unused unless no other is free (publish.ts).

/** What 56 bits hold: half of it for a clock that steps back, a quarter until the base moves, the rest for debt, below 2^53. */
const ARRIVAL_UNITS: i64 = 1 << 56
/** No time base lasts longer than 570 years, so that the end of any ban fits a value. */
const LONGEST_US: i64 = 1 << 54

@inline export function recordAddress(sequence: u64): usize {
  return base + RECORDS + <usize>(sequence % <u64>RECORD_COUNT) * RECORD_SIZE
}

@inline export function sequenceOf(epochWord: u64): u64 {
  return epochWord & 0xffffffff
}

/** The sequence number in a record, marked or not. */
@inline export function sequenceIn(record: usize): u64 {
  return sequenceOf(<u64>field(record, RECORD_SEQUENCE))
}

// Not through atomics.ts: a record never changes while it can be read, so a switch of threads here would show nothing.

@inline export function field(record: usize, offset: usize): i64 {
  return atomic.load<i64>(record + offset)
}

@inline export function setField(record: usize, offset: usize, value: i64): void {
  atomic.store<i64>(record + offset, value)
}

/** Ticks between two rounded-up times that guarantee that a window has passed. */
export function ticksOfWindow(windowUs: i64, tickUs: i64): i64 {
  return tickUs <= 1 ? windowUs : (windowUs + tickUs - 1) / tickUs + 1
}

/** How long a time base lasts. */
export function rangeOf(record: usize): i64 {
  const bits = field(record, RECORD_NUMBER_BITS)
  if (bits == 0) return ARRIVAL_UNITS / field(record, RECORD_UNITS_PER_US)
  const tickUs = field(record, RECORD_TICK_US)
  return tickUs >= LONGEST_US >> bits ? LONGEST_US - (LONGEST_US % tickUs) : tickUs << bits
}
