import { RECORDS, RECORD_COUNT, RECORD_SEQUENCE, RECORD_SIZE, base } from "../memory-map"

// A policy in shared memory. One thread writes a record: the one that has put its sequence number there. It does so before it
// publishes the record by a swap of the epoch word. A record is not reused while its writer is at work, however long that pauses,
// nor while a state word may need it. If a writer dies, its record, one of 64, stays unused unless no other is free (publish.ts).

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
