import { load } from "./atomics"
import { valueIn } from "./carry"
import { DENY_WHEN_FULL, ENTRY_SIZE, FIRST_LINES, LINES, LINE_SIZE, SECOND_LINES, STATE, TABLE } from "./memory-map"
import { capacity, epoch, isRate, refresh, sinceBase, stride, unitsPerToken } from "./policy"
import { base } from "./section"
import { settled } from "./several"
import { debtOf, untilFree, untilNew } from "./standing"
import { carryOver } from "./sweep"
import { passes } from "./verbs"
import { NEVER_USED, NOBODY, fingerprintOf, isBlock, isMark, isTicket, lagOf, markFingerprint } from "./words"

// Open addressing. A key's range is a fixed sequence of lines, the same for every thread. A key lives in at most one entry of
// its range and never moves; nobody lives beyond the first never-used entry, so every search may stop there.
//
// A table that grows has up to three parts, all laid out when it is made: memory that nothing was written to takes only addresses. The
// range is the lines of a key in the first part, then those in the second, then in the third. So growth is no change that threads could
// disagree about: a key moves into a later part when its lines of the earlier ones are full, as it moves into a later line.

/** Lines of the last part that a key may live in. At 69 % load 10^8 keys find room within 24. */
const RANGE: i32 = 24
/** Of a part before it, where a key without room goes on to the next: few, as each search there comes by all of them. */
const EARLIER_RANGE: i32 = 10
/** Up to here the range is the whole part. */
const SMALL_PART: i32 = 64

/** Lines of the parts, the last two 0 when there are none. */
let lines: i32 = 0
let secondLines: i32 = 0
let thirdLines: i32 = 0
export let tableAddress: usize = 0
/** Lines of a key in all parts; in the first one. */
export let range: i32 = 0
let firstRange: i32 = 0
let secondRange: i32 = 0
let stepGrowth: i32 = 0
let denyWhenFull: bool = false

export function openTable(): void {
  tableAddress = base + TABLE
  const all = <i32>load(base + LINES)
  const first = <i32>load(base + FIRST_LINES)
  lines = first == 0 ? all : first
  secondLines = <i32>load(base + SECOND_LINES)
  thirdLines = all - lines - secondLines
  firstRange = rangeIn(lines, secondLines == 0)
  secondRange = rangeIn(secondLines, thirdLines == 0)
  range = firstRange + secondRange + rangeIn(thirdLines, true)
  stepGrowth = growthIn(lines)
  denyWhenFull = load(base + DENY_WHEN_FULL) != 0
}

@inline function rangeIn(lines: i32, isLast: bool): i32 {
  if (lines <= SMALL_PART) return lines
  return isLast ? RANGE : EARLIER_RANGE
}

/** Triangular steps keep clusters from growing; with a prime number of lines no line comes twice. */
@inline function growthIn(lines: i32): i32 {
  return lines <= SMALL_PART ? 0 : 1
}

@inline export function homeLine(hash: u32): i32 {
  return <i32>((<u64>hash * <u64>lines) >> 32)
}

/** The line of a key after its line number `probe`. */
@inline export function lineAfter(line: i32, probe: i32, fingerprint: u64, home: i32): i32 {
  if (probe + 1 >= firstRange) return lineBeyond(line, probe + 1 - firstRange, fingerprint, home)
  const next = line + 1 + probe * stepGrowth
  return next >= lines ? next - lines : next
}

/** Line number `probe` of a key in the later parts; `line` is the one before it. Past the last it is any. */
function lineBeyond(line: i32, probe: i32, fingerprint: u64, home: i32): i32 {
  if (probe < secondRange) return lineIn(lines, secondLines, line, probe, fingerprint, home)
  return probe + firstRange < range ? lineIn(lines + secondLines, thirdLines, line, probe - secondRange, fingerprint, home) : line
}

function lineIn(first: i32, size: i32, line: i32, probe: i32, fingerprint: u64, home: i32): i32 {
  if (probe == 0) return first + <i32>((<u64>laterHash(fingerprint, home) * <u64>size) >> 32)
  const next = line + 1 + (probe - 1) * growthIn(size)
  return next >= first + size ? next - size : next
}

/**
 * Where a key's lines in the later parts begin. By the home as well: of two keys with one fingerprint, which the lines in the first part tell
 * apart, the later ones must not make one.
 */
@inline function laterHash(fingerprint: u64, home: i32): u32 {
  const mixed = ((fingerprint >> 1) ^ (<u64>home << 32)) * 0x9e3779b97f4a7c15
  return <u32>(((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9) >> 32)
}

/** The part of the table in which an entry lies, 0 to 2. */
@inline export function partOf(entry: usize): i32 {
  if (entry < lineAddress(lines)) return 0
  return entry < lineAddress(lines + secondLines) ? 1 : 2
}

@inline export function lineAddress(line: i32): usize {
  return tableAddress + <usize>line * LINE_SIZE
}

/** The state word that the last `find` or `choose` read in the entry it returned. */
export let seenState: u64 = 0

/**
 * The entry in which the key lives, or 0.
 *
 * The state is read before the identity. Were an entry to change hands between the two, a state read *second* could be the
 * new owner's, and the swap that follows would charge him. Read first, it is the old owner's, and the swap fails.
 */
export function find(fingerprint: u64, home: i32): usize {
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      const state = load(entry + STATE)
      if (state == NEVER_USED) return 0
      if (fingerprintOf(load(entry)) == fingerprint) {
        if (!isMark(state)) {
          seenState = state
          return entry
        }
        if (isTicket(state)) {
          settled(entry + STATE)
          entry -= ENTRY_SIZE
        }
      }
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return 0
}

/** What `choose` found. */
export const NOTHING: i32 = 0
export const FREE: i32 = 1
export const IDLE: i32 = 2
export const MARKED: i32 = 3
export const LIVE: i32 = 4
/** Another thread is moving the very same key in. */
export const RIVAL: i32 = 5
/** The very same key has moved in since it was missed. */
export const RESIDENT: i32 = 6

export let chosen: usize = 0
/** Debt of a LIVE choice. */
export let chosenDebt: i64 = 0

/**
 * Where a newcomer could live, best first: a never-used or idle entry, a mark (which may be abandoned), the entry with the
 * least debt among those where a take of 1 would pass now.
 */
export function choose(fingerprint: u64, home: i32, nowUs: i64): i32 {
  let kind = NOTHING
  let least: i64 = i64.MAX_VALUE
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      const state = settled(entry + STATE)
      if (state == NEVER_USED) return pick(FREE, entry, state, 0)
      if (isMark(state)) {
        if (markFingerprint(state) == fingerprint) return pick(RIVAL, entry, state, 0)
        if (kind != MARKED) kind = pick(MARKED, entry, state, 0)
        continue
      }
      const identity = load(entry)
      // Judged like any other it could be forgotten for itself, and its charge with it.
      if (fingerprintOf(identity) == fingerprint) return pick(RESIDENT, entry, state, 0)
      refresh()
      if (isOfOldPolicy(entry, state, identity)) {
        // One that cannot be read is none to forget.
        if (carryOver(entry)) entry -= ENTRY_SIZE
        continue
      }
      if (fingerprintOf(identity) == NOBODY) return pick(FREE, entry, state, 0)
      const debt = residentDebt(entry, fingerprintOf(identity), state, nowUs)
      if (debt <= 0) return pick(IDLE, entry, state, 0)
      if (kind == MARKED || debt >= least) continue
      const yields = !denyWhenFull && !isBlock(fingerprintOf(identity)) && passes(debt, unitsPerToken, capacity)
      if (yields) {
        least = debt
        kind = pick(LIVE, entry, state, debt)
      }
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return kind
}

@inline function pick(kind: i32, entry: usize, state: u64, debt: i64): i32 {
  chosen = entry
  seenState = state
  chosenDebt = debt
  return kind
}

/** Whether the entry is more than a word, and has to be carried over from an older policy before it can be read. */
@inline function isOfOldPolicy(entry: usize, state: u64, identity: u64): bool {
  return stride != 0 && lagOf(state, epoch) != 0 && !isBlock(fingerprintOf(identity))
}

/** What a key owes now. The policy was looked at after its state was read, so the state is never of a newer one. */
export function residentDebt(entry: usize, fingerprint: u64, state: u64, nowUs: i64): i64 {
  const ofBlock = isBlock(fingerprint)
  return debtOf(ofBlock, entry, valueIn(state, lagOf(state, epoch), entry, ofBlock), sinceBase(nowUs))
}

/** Microseconds until the first key in the range is idle, or (unless newcomers are denied then) may be forgotten. At least 1. */
export function roomAfterUs(fingerprint: u64, home: i32, nowUs: i64, perUs: i64): i64 {
  let least: i64 = i64.MAX_VALUE
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      const state = settled(entry + STATE)
      if (state == NEVER_USED || isMark(state)) return 1
      const identity = load(entry)
      refresh()
      if (fingerprintOf(identity) == NOBODY || isOfOldPolicy(entry, state, identity)) return 1
      const debt = residentDebt(entry, fingerprintOf(identity), state, nowUs)
      least = min<i64>(least, roomIn(debt, isBlock(fingerprintOf(identity)), perUs))
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return max<i64>(least, 1)
}

/** Microseconds until a key with this debt, the one last read, is idle or may be forgotten. */
function roomIn(debt: i64, ofBlock: bool, perUs: i64): i64 {
  if (ofBlock) return debt
  if (!isRate()) return denyWhenFull ? untilNew() : untilFree(1)
  return ((denyWhenFull ? debt : debt + unitsPerToken - capacity) + perUs - 1) / perUs
}
