import { BUCKET } from "./forms"
import * as gcra from "./gcra"
import { BLOCKS, BLOCK_CAPACITY, BLOCK_COUNT, BLOCK_FORM, BLOCK_SIZE, BLOCK_TICKET, BLOCK_UNITS_PER_US } from "./memory-map"
import { base } from "./section"
import * as bucket from "./token-bucket"

// A policy in shared memory. A block is written by the one thread that has put its ticket there, before the swap of the epoch
// word that publishes it. It is not used again while its writer is at it, however long he pauses, nor while a state word may
// need it; a writer that dies leaves one of the 64 blocks unused, unless no other is to be had (update.ts).

/** More than any value of a state word. */
const PAST_ALL_UNITS: i64 = 1 << 57

@inline export function blockAddress(ticket: u64): usize {
  return base + BLOCKS + <usize>(ticket % <u64>BLOCK_COUNT) * BLOCK_SIZE
}

@inline export function ticketOf(epochWord: u64): u64 {
  return epochWord & 0xffffffff
}

/** The ticket in a block, marked or not. */
@inline export function ticketIn(block: usize): u64 {
  return ticketOf(<u64>field(block, BLOCK_TICKET))
}

// Not through atomics.ts: a block never changes while it can be read, so a switch of threads here would show nothing.

@inline export function field(block: usize, offset: usize): i64 {
  return atomic.load<i64>(block + offset)
}

@inline export function setField(block: usize, offset: usize, value: i64): void {
  atomic.store<i64>(block + offset, value)
}

// What policy.ts does with the copy of the policy in force, for any policy in a block.

export function debtIn(block: usize, value: u64, usAfterBase: i64): i64 {
  const perUs = field(block, BLOCK_UNITS_PER_US)
  // A key may have been idle for years: past the last value of a word it owes nothing, and the product must not wrap.
  const us = min<i64>(usAfterBase, PAST_ALL_UNITS / perUs)
  if (<i32>field(block, BLOCK_FORM) == BUCKET) return bucket.debtOf(value, us, perUs, field(block, BLOCK_CAPACITY))
  return gcra.debtOf(value, us * perUs)
}

export function valueIn(block: usize, debt: i64, us: i64): u64 {
  const perUs = field(block, BLOCK_UNITS_PER_US)
  if (<i32>field(block, BLOCK_FORM) == BUCKET) return bucket.valueFor(debt, us, perUs, field(block, BLOCK_CAPACITY))
  return gcra.valueFor(debt, us * perUs)
}

/** Between times that are rounded up to ticks, so many make sure that a window has passed. */
export function ticksOfWindow(windowUs: i64, tickUs: i64): i64 {
  return tickUs <= 1 ? windowUs : (windowUs + tickUs - 1) / tickUs + 1
}
