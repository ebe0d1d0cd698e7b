import { ENTRIES_PER_LINE, EXPLORED } from "../build-flags"
import { ENTRY_SIZE, LINES, RINGS, base, tableAddress } from "../memory-map"
import { load, store, swap } from "../atomics/atomics"
import { resolved } from "../atomics/kcas"

// What is held of a key: sums of tokens, by the time at which the holds end. The memory grows by room for it with the first open work:
//
//   ring word    0 0 | version 29 | turn 16 | number 17       of each entry: which ring it has, 0 for none
//   ring         place | since | ends | sums                  at most so many ends of a key at once
//   place        0 0 | turn 16 | claimed | entry 31           whose it is; the turn grows with each claim
//
// A slot counts while its end lies after the reading of the clock, and after `since`: the latest reading by which anything was decided on the
// grounds that a slot had ended. So for a key an end that has passed stays so, whatever the clock does.
//
// A ring changes only together with its ring word, which then has another version, and a key has a ring just as long as its state word is
// marked `held`: both change in one step (kcas.ts). So whoever has read state, ring word and ring, in this order, and swaps the first two
// has decided by a ring that was still so. And a take that has found no ring loses its swap once there is one.

const SLOTS: i32 = EXPLORED ? 2 : 32
const PLACE: usize = 0
const SINCE: usize = 8
const ENDS: usize = 16
const SUMS: usize = ENDS + <usize>SLOTS * 8
const RING_SIZE: usize = SUMS + <usize>SLOTS * 8

const NUMBER_MASK: u64 = (1 << 17) - 1
const TURN_SHIFT: u64 = 17
const TURN_MASK: u64 = (1 << 16) - 1
const NAME_MASK: u64 = (1 << 33) - 1
const VERSION: u64 = 1 << 33
const WORD_MASK: u64 = (1 << 62) - 1
const CLAIMED: u64 = 1 << 31
const ENTRY_MASK: u64 = (1 << 31) - 1
const PLACE_TURN_SHIFT: u64 = 32
/** The most keys that may have rings; half of the table's, if that is less. */
const MOST_RINGS: u64 = 100_000
const PAGE_SIZE: u64 = 65536
/** Below so many pages, rings get a part of what is free of these; and a few bytes for each entry in any case. */
const SPACIOUS_PAGES: u64 = 24_576
const ROOM_PARTS: u64 = 16
const LEAST_BYTES: u64 = 4
const RING_COUNT_SHIFT: u64 = 32

/** Where ring words begin, and rings; 0 while this thread has met none. */
let area: usize = 0
let rings: usize = 0
export let ringCount: u64 = 0

/** Finds the rings, or makes room for them. False: the memory cannot grow. */
export function openRings(): bool {
  if (area != 0) return true
  const entries = load(base + LINES) * ENTRIES_PER_LINE
  if (load(base + RINGS) == 0) {
    const count = ringsFor(entries)
    const bytes = entries * 8 + count * RING_SIZE
    const page = memory.grow(<i32>((bytes + PAGE_SIZE - 1) / PAGE_SIZE))
    if (page < 0) return false
    // If this swap is lost, the pages are wasted.
    swap(base + RINGS, 0, (count << RING_COUNT_SHIFT) | (<u64>page * PAGE_SIZE))
  }
  const found = load(base + RINGS)
  ringCount = found >> RING_COUNT_SHIFT
  area = <usize>found
  rings = area + <usize>entries * 8
  return true
}

/** How many rings a table gets: tables of many plans share one memory, and each leaves room to the next. */
function ringsFor(entries: u64): u64 {
  const pages = <u64>memory.size()
  const spacious = pages < SPACIOUS_PAGES ? ((SPACIOUS_PAGES - pages) * PAGE_SIZE) / ROOM_PARTS : 0
  const bytes = max<u64>(spacious, entries * LEAST_BYTES)
  return max<u64>(min<u64>(min<u64>(MOST_RINGS, entries / 2), bytes / RING_SIZE), 1)
}

@inline export function ringWordOf(entry: usize): usize {
  return area + (entry - tableAddress) / ENTRY_SIZE * 8
}

/** The ring with a number from 1 to {@link ringCount}. */
@inline export function ringAt(number: u64): usize {
  return rings + <usize>(number - 1) * RING_SIZE
}

// Ring words.

/** Which ring it is, and whose turn: what a hold knows its ring by. */
@inline export function nameIn(word: u64): u64 {
  return word & NAME_MASK
}

@inline export function namesNone(word: u64): bool {
  return (word & NUMBER_MASK) == 0
}

@inline export function nextVersion(word: u64): u64 {
  return (word + VERSION) & WORD_MASK
}

/** The next word of an entry, for a ring or for none. */
@inline export function renamed(word: u64, name: u64): u64 {
  return (nextVersion(word) & ~NAME_MASK) | name
}

// Places.

@inline export function placeOf(ring: usize): usize {
  return ring + PLACE
}

@inline export function isClaimed(place: u64): bool {
  return (place & CLAIMED) != 0
}

/** The entry of a place, 0 for none. */
@inline export function entryIn(place: u64): usize {
  const number = place & ENTRY_MASK
  return number == 0 ? 0 : tableAddress + <usize>(number - 1) * ENTRY_SIZE
}

/** The name of the ring with this number and place. */
@inline export function nameAt(number: u64, place: u64): u64 {
  return ((place >> PLACE_TURN_SHIFT) << TURN_SHIFT) | number
}

@inline export function claimFor(place: u64, entry: usize): u64 {
  const turn = ((place >> PLACE_TURN_SHIFT) + 1) & TURN_MASK
  return (turn << PLACE_TURN_SHIFT) | CLAIMED | <u64>((entry - tableAddress) / ENTRY_SIZE + 1)
}

@inline export function settled(place: u64): u64 {
  return place & ~CLAIMED
}

/** Empties a ring that is claimed: a word may hold a reference of a change that has failed, which would bring its tokens back. */
export function clear(ring: usize): void {
  for (let word = ring + SINCE; word < ring + RING_SIZE; word += 8) {
    for (let tokens = resolved(word); tokens != 0; tokens = resolved(word)) {
      if (swap(word, tokens, 0)) break
    }
  }
}

/** Makes a place for an end in a ring that is claimed and empty. */
export function placeFirst(ring: usize, endUs: i64): void {
  store(ring + ENDS + placeFor(endUs), <u64>endUs)
}

// The ring of the key last read.

export let ringWord: u64 = 0
let ring: usize = 0
let sinceUs: i64 = 0
let atUs: i64 = 0
/** What is held in all slots that count, and when the last of them ends: 0 for none. */
export let held: i64 = 0
export let lastEndUs: i64 = 0
/** Whether no end lies ahead, with tokens or without. */
export let isOver: bool = false
/** Whether tokens have ended since `since`. */
export let hasLapsed: bool = false

/**
 * Reads of the ring of an entry, whose state word, read before, is marked `held`, only which it is and its time. False: it is none, as the state has
 * changed since.
 */
export function readRingHead(entry: usize, nowUs: i64): bool {
  if (area == 0) openRings()
  ringWord = resolved(ringWordOf(entry))
  held = 0
  if (namesNone(ringWord)) return false
  ring = ringAt(ringWord & NUMBER_MASK)
  sinceUs = <i64>resolved(ring + SINCE)
  atUs = max<i64>(nowUs, sinceUs)
  return true
}

/** Reads the whole ring. */
export function readHoldRing(entry: usize, nowUs: i64): void {
  lastEndUs = 0
  isOver = true
  hasLapsed = false
  if (!readRingHead(entry, nowUs)) return
  for (let i: usize = 0; i < <usize>SLOTS * 8; i += 8) {
    const endUs = <i64>resolved(ring + ENDS + i)
    if (endUs <= sinceUs) continue
    if (endUs > atUs) {
      isOver = false
      const tokens = <i64>resolved(ring + SUMS + i)
      if (tokens == 0) continue
      held += tokens
      lastEndUs = max<i64>(lastEndUs, endUs)
    } else if (resolved(ring + SUMS + i) != 0) hasLapsed = true
  }
}

/** Whether a hold of the ring with this name is in the ring last read. 0: of whichever ring, as the key has moved with its holds. */
@inline export function isOfRing(name: u64): bool {
  return name == 0 || name == nameIn(ringWord)
}

/** Whether the ring of an entry is as it was read. */
@inline export function isRingUnchanged(entry: usize): bool {
  return resolved(ringWordOf(entry)) == ringWord
}

@inline export function sinceOfRing(): usize {
  return ring + SINCE
}

/** Of the ring last read: `since`, and the reading that it was read by. */
@inline export function sinceSeen(): u64 {
  return <u64>sinceUs
}

@inline export function readingSeen(): u64 {
  return <u64>atUs
}

/** The sum of the slot with this end in the ring last read; 0 for none that counts. */
export function sumOf(endUs: i64): usize {
  if (endUs <= atUs || namesNone(ringWord)) return 0
  let i = placeFor(endUs)
  for (let tries = 0; tries < SLOTS; tries++) {
    if (<i64>resolved(ring + ENDS + i) == endUs) return ring + SUMS + i
    i = placeAfter(i)
  }
  return 0
}

/** The sum beside an end, and the other way round. */
@inline export function endBeside(sum: usize): usize {
  return sum - SUMS + ENDS
}

/** The sum of a slot without a use in the ring last read; 0 when all ends lie ahead. */
export function spareSum(endUs: i64): usize {
  let i = placeFor(endUs)
  for (let tries = 0; tries < SLOTS; tries++) {
    if (<i64>resolved(ring + ENDS + i) <= atUs) return ring + SUMS + i
    i = placeAfter(i)
  }
  return 0
}

/** The first end after `endUs` in the ring last read, 0 for none. */
export function endAfter(endUs: i64): i64 {
  let found: i64 = 0
  for (let i: usize = 0; i < <usize>SLOTS * 8; i += 8) {
    const other = <i64>resolved(ring + ENDS + i)
    if (other > max<i64>(endUs, atUs) && (found == 0 || other < found)) found = other
  }
  return found
}

/** The first end after `fromUs` in the ring last read with tokens, whose number is in `tokensThere`; 0 for none. */
export function nextEnd(fromUs: i64): i64 {
  let found: i64 = 0
  for (let i: usize = 0; i < <usize>SLOTS * 8; i += 8) {
    const endUs = <i64>resolved(ring + ENDS + i)
    if (endUs <= max<i64>(fromUs, atUs) || (found != 0 && endUs >= found)) continue
    const tokens = <i64>resolved(ring + SUMS + i)
    if (tokens == 0) continue
    found = endUs
    tokensThere = tokens
  }
  return found
}

export let tokensThere: i64 = 0

/** Where the search for an end begins, as an offset: the ends of a key lie a power of two apart. */
@inline function placeFor(endUs: i64): usize {
  if (EXPLORED) return 0
  return <usize>((<u64>endUs * 0x9e3779b97f4a7c15) >> 59) * 8
}

@inline function placeAfter(i: usize): usize {
  return (i + 8) & (<usize>SLOTS * 8 - 1)
}
