import { RECORDS, RECORD_COUNT, RECORD_SEQUENCE, RECORD_SIZE, base } from "../memory-map"
import { windowUs } from "./policy"

// A policy in shared memory. A block is written by the one thread that has put its ticket there, before the swap of the epoch
// word that publishes it. It is not used again while its writer is at it, however long he pauses, nor while a state word may
// need it; a writer that dies leaves one of the 64 blocks unused, unless no other is to be had (update.ts).

@inline export function recordAddress(sequence: u64): usize {
  return base + RECORDS + <usize>(sequence % <u64>RECORD_COUNT) * RECORD_SIZE
}

@inline export function sequenceOf(epochWord: u64): u64 {
  return epochWord & 0xffffffff
}

/** The ticket in a block, marked or not. */
@inline export function sequenceIn(record: usize): u64 {
  return sequenceOf(<u64>field(record, RECORD_SEQUENCE))
}

// Not through atomics.ts: a block never changes while it can be read, so a switch of threads here would show nothing.

@inline export function field(record: usize, offset: usize): i64 {
  return atomic.load<i64>(record + offset)
}

@inline export function setField(record: usize, offset: usize, value: i64): void {
  atomic.store<i64>(record + offset, value)
}

/** Between times that are rounded up to ticks, so many make sure that a window has passed. */
export function ticksOfWindow(windowUs: i64, tickUs: i64): i64 {
  return tickUs <= 1 ? windowUs : (windowUs + tickUs - 1) / tickUs + 1
}
