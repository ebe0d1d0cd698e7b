import { STATE } from "../memory-map"
import { load, swap } from "../atomics/atomics"
import { resolved } from "../atomics/kcas"
import { extensionOf } from "../policy/extension"
import { countBits, slots } from "../policy/policy"

// The requests of a log before the newest one, which is in the state word. An entry's extension is a header and a ring of slots:
//
//   header       0 0 | owner 3 | turn 3 | whole | place 17 | held 17 | cost so far 21
//   slot         time | cost so far          a request; the costs of all up to it, as many bits as the policy needs
//
// `place` is the slot of the newest request in the ring, `held` their number. `whole` says that the ring holds all requests since
// the key came. If not, the oldest slot has expired and is kept for its cost so far. Times are modulo their width, in
// ticks, and read as ages before the newest request; nothing in the ring is so old that an age would be ambiguous. `turn` grows
// with every change other than a copy, so that a copy under way then fails.
//
// All that decides is in the state word. A slot outside of what the header holds has no meaning. So any thread may write it that
// has read the state word which says what belongs there, and found that word unchanged after it read the slot.

const COST_BITS: u64 = 21
const COST_MASK: u64 = (1 << 21) - 1
const PLACE_BITS: u64 = 17
const PLACE_MASK: u64 = (1 << 17) - 1
const WHOLE: u64 = 1 << 55
const TURN: u64 = 1 << 56
const TURN_MASK: u64 = 7 << 56
const OWNER_SHIFT: u64 = 59
const OWNER_MASK: u64 = 7 << 59

// The ring as last read.
export let header: u64 = 0
export let place: i64 = 0
export let held: i64 = 0
export let costSoFar: i64 = 0
export let whole: bool = true
let ring: usize = 0
let length: i64 = 0

/** An empty ring of the owner with this generation. */
@inline export function emptyHeader(generation: u64): u64 {
  return ((generation << OWNER_SHIFT) & OWNER_MASK) | WHOLE
}

@inline export function headerOf(entry: usize): usize {
  return extensionOf(entry)
}

/** Reads the header; a key outside of the table has an empty ring. */
export function readRing(entry: usize): void {
  if (entry == 0) takeHeader(WHOLE)
  else readRingAt(headerOf(entry), slots)
}

/** Reads the ring of `slots` slots whose header is at `address`. */
export function readRingAt(address: usize, slots: i64): void {
  ring = address + 8
  length = slots
  takeHeader(resolved(address))
}

export function takeHeader(word: u64): void {
  header = word
  unpack()
}

function unpack(): void {
  costSoFar = <i64>(header & COST_MASK)
  held = <i64>((header >> COST_BITS) & PLACE_MASK)
  place = <i64>((header >> (COST_BITS + PLACE_BITS)) & PLACE_MASK)
  whole = (header & WHOLE) != 0
}

/** The header with other contents. `turned`: for any change but a copy. */
export function headerWith(place: i64, held: i64, costSoFar: i64, whole: bool, turned: bool): u64 {
  const turn = (header + (turned ? TURN : 0)) & TURN_MASK
  const contents = (((<u64>place << PLACE_BITS) | <u64>held) << COST_BITS) | <u64>costSoFar
  return (header & OWNER_MASK) | turn | (whole ? WHOLE : 0) | contents
}

/** The slot `back` places before the newest one. */
@inline function slotAt(back: i64): usize {
  return slotAddress(placeBefore(place, back))
}

@inline export function placeAfter(place: i64): i64 {
  return place + 1 == length ? 0 : place + 1
}

@inline export function placeBefore(place: i64, by: i64): i64 {
  return place < by ? place - by + length : place - by
}

@inline export function slotAddress(place: i64): usize {
  return ring + <usize>(place << 3)
}

/** Ticks from request `i` to `lastTick`; the oldest request in the ring is 0. */
@inline export function ageOf(i: i64, lastTick: i64): i64 {
  return ageIn(i, lastTick, <u64>countBits)
}

/** The same in slots with `costBits` bits of cost. */
export function ageIn(i: i64, lastTick: i64, costBits: u64): i64 {
  const slot = slotAt(held - 1 - i)
  return <i64>((<u64>lastTick - (load(slot) >> costBits)) & (~(<u64>0) >> costBits))
}

/** Cost of all requests up to number `i` of the ring. */
@inline export function costUpTo(i: i64): i64 {
  return costUpToIn(i, <u64>countBits)
}

/** The same in slots with `costBits` bits of cost; up to number -1 it is the cost of what came before the ring. */
export function costUpToIn(i: i64, costBits: u64): i64 {
  return i < 0 ? 0 : <i64>(load(slotAt(held - 1 - i)) & ((<u64>1 << costBits) - 1))
}

/** The contents of a slot for a request at `tick`. */
@inline export function slotOf(tick: i64, cost: i64): u64 {
  return (<u64>tick << <u64>countBits) | <u64>cost
}

/** Writes `word` into a slot that has no meaning yet. False: the state has changed, and with it what belongs there. */
export function fill(entry: usize, state: u64, slot: usize, word: u64): bool {
  const seen = load(slot)
  if (seen == word) return true
  return load(entry + STATE) == state && swap(slot, seen, word)
}
