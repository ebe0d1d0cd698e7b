import { DENY_WHEN_FULL, FIRST_LINES, LINES, LINE_SIZE, SECOND_LINES, base, tableAddress } from "../memory-map"
import { load } from "../atomics/atomics"

// Open addressing. A key's range is a fixed sequence of lines, the same for every thread. A key lives in at most one entry of its
// range and never moves. No key lives beyond the first never-used entry, so every search may stop there.
//
// A table that grows has up to three parts, all laid out when it is made: memory that was never written takes only addresses. The
// range is the key's lines in the first part, then those in the second, then in the third. So growth is no change on which threads
// could disagree: a key goes to a later part when its lines of the earlier ones are full, as it goes to a later line.

/** Lines of a key's range in the last part. At 69 % load 10^8 keys find room within 24. */
const RANGE: i32 = 24
/** Lines in an earlier part, where a key without room goes on to the next: few, as each search there passes all of them. */
const EARLIER_RANGE: i32 = 10
/** Up to this size the range is the whole part. */
const SMALL_PART: i32 = 64

/** Lines of the parts; the last two are 0 when there are none. */
let lines: i32 = 0
let secondLines: i32 = 0
let thirdLines: i32 = 0
/** Lines of a key in all parts, and in the first one. */
export let range: i32 = 0
let firstRange: i32 = 0
let secondRange: i32 = 0
let stepGrowth: i32 = 0
export let denyWhenFull: bool = false

export function openTable(): void {
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

/** Line number `probe` of a key in the later parts; `line` is the one before it. Past the last line the result has no meaning. */
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
 * Where a key's lines in the later parts begin. It depends on the home line as well: two keys with one fingerprint, which the
 * lines of the first part tell apart, must not become one in the later parts.
 */
@inline function laterHash(fingerprint: u64, home: i32): u32 {
  const mixed = ((fingerprint >> 1) ^ (<u64>home << 32)) * 0x9e3779b97f4a7c15
  return <u32>(((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9) >> 32)
}

/** The part of the table that holds an entry, 0 to 2. */
@inline export function partOf(entry: usize): i32 {
  if (entry < lineAddress(lines)) return 0
  return entry < lineAddress(lines + secondLines) ? 1 : 2
}

@inline export function lineAddress(line: i32): usize {
  return tableAddress + <usize>line * LINE_SIZE
}
