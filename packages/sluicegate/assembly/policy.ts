import { add, load, swap } from "./atomics"
import * as gcra from "./gcra"
import { policyChanged } from "./host"
import {
  BLOCKS, BLOCK_BASE_US, BLOCK_CAPACITY, BLOCK_COUNT, BLOCK_DESCRIPTION, BLOCK_KEEPS_DEBT, BLOCK_PACKED, BLOCK_PREVIOUS, BLOCK_REBASE_AT_US,
  BLOCK_SINCE_US, BLOCK_SIZE, BLOCK_TICKET, BLOCK_UNITS_PER_TOKEN, BLOCK_UNITS_PER_US, EPOCH, TICKETS,
} from "./memory-map"
import { sweepShareOf, finishSweepOf } from "./sweep"
import * as bucket from "./token-bucket"
import { headOf, stateHead } from "./words"

// The policy in force lives in a block of shared memory; the epoch word names it. A thread keeps a copy in these globals and
// compares the epoch word at each take. A block is written by the one thread that holds its ticket, before the swap of
// the epoch word that publishes it, and is used again 64 tickets later; a writer that dies leaves a block nobody reads.

let epochWord: u64 = 0
export let epoch: u64 = 0
export let unitsPerUs: i64 = 1
export let unitsPerToken: i64 = 1
export let capacity: i64 = 1
export let packed: bool = false
export let burst: i64 = 1
let baseUs: i64 = 0
let rebaseAtUs: i64 = 0
let currentHead: u64 = 0

/** Values stay below 2^56 when an arrival lies at most 2^55 units after the base and debt is below 2^53. */
const ARRIVAL_UNITS: i64 = 1 << 55
/** The same for 32 bits of 1,024 microseconds. */
const PACKED_US: i64 = 1 << 41
/** More than any value of a state word. */
const PAST_ALL_UNITS: i64 = 1 << 57

@inline export function blockAddress(ticket: u64): usize {
  return BLOCKS + <usize>(ticket % BLOCK_COUNT) * BLOCK_SIZE
}

@inline function field(block: usize, offset: usize): i64 {
  return atomic.load<i64>(block + offset)
}

@inline function setField(block: usize, offset: usize, value: i64): void {
  atomic.store<i64>(block + offset, value)
}

/** Makes this thread's copy the policy in force. Called after a state word was read, so no word is newer than the copy. */
@inline export function refresh(): void {
  if (load(EPOCH) != epochWord) reload()
}

function reload(): void {
  let word = load(EPOCH)
  while (true) {
    const block = blockAddress(word & 0xffffffff)
    unitsPerUs = field(block, BLOCK_UNITS_PER_US)
    unitsPerToken = field(block, BLOCK_UNITS_PER_TOKEN)
    capacity = field(block, BLOCK_CAPACITY)
    burst = capacity / unitsPerToken
    packed = field(block, BLOCK_PACKED) != 0
    baseUs = field(block, BLOCK_BASE_US)
    rebaseAtUs = field(block, BLOCK_REBASE_AT_US)
    // Still the policy in force: its block was not being written meanwhile.
    const again = load(EPOCH)
    if (again == word) break
    word = again
  }
  epochWord = word
  epoch = word >> 32
  currentHead = stateHead(epoch)
  policyChanged()
}

/** Nothing to load, convert or move first: the state is of the policy that this thread knows, which is in force at `nowUs`. */
@inline export function isOrdinary(state: u64, nowUs: i64): bool {
  return load(EPOCH) == epochWord && headOf(state) == currentHead && nowUs <= rebaseAtUs
}

/** Block of the policy in force, for JavaScript. */
export function policyBlock(): usize {
  return blockAddress(epochWord & 0xffffffff)
}

// ---- time ----

/** Microseconds since the time base. Before the base time stands still. */
@inline export function sinceBase(nowUs: i64): i64 {
  return max<i64>(nowUs - baseUs, 0)
}

/** Moves the time base up when `nowUs` has come too far from it for a state word; true when the caller must start again. */
@inline export function rebased(nowUs: i64): bool {
  if (nowUs <= rebaseAtUs) return false
  rebase(nowUs)
  return true
}

function rebase(nowUs: i64): void {
  const block = propose()
  memory.copy(block + BLOCK_DESCRIPTION, policyBlock() + BLOCK_DESCRIPTION, BLOCK_SIZE - BLOCK_DESCRIPTION)
  finishSweepOf(epoch)
  publish(block, nowUs, true)
}

// ---- a key's debt, and the value that holds it ----

@inline export function debtAt(value: u64, us: i64): i64 {
  if (packed) return bucket.debtOf(value, us, unitsPerUs, capacity)
  return gcra.debtOf(value, us * unitsPerUs)
}

@inline export function valueAt(debt: i64, us: i64): u64 {
  if (packed) return bucket.valueFor(debt, us, unitsPerUs, capacity)
  return gcra.valueFor(debt, us * unitsPerUs)
}

/** A block's value is its end in microseconds since the base, whatever the policy. */
@inline export function blockDebtAt(value: u64, us: i64): i64 {
  return gcra.debtOf(value, us)
}

@inline export function blockValueAt(debt: i64, us: i64): u64 {
  return gcra.valueFor(debt, us)
}

// ---- change ----

/** A block of this thread's own, to be filled and published. */
export function propose(): usize {
  const ticket = add(TICKETS, 1) & 0xffffffff
  const block = blockAddress(ticket)
  setField(block, BLOCK_TICKET, <i64>ticket)
  return block
}

/** Fills in the core's numbers of a proposed block and puts it in force from `nowUs` on. */
export function update(block: usize, toUnitsPerUs: i64, toUnitsPerToken: i64, toCapacity: i64, toPacked: bool, nowUs: i64): void {
  setField(block, BLOCK_UNITS_PER_US, toUnitsPerUs)
  setField(block, BLOCK_UNITS_PER_TOKEN, toUnitsPerToken)
  setField(block, BLOCK_CAPACITY, toCapacity)
  setField(block, BLOCK_PACKED, toPacked ? 1 : 0)
  while (true) {
    refresh()
    finishSweepOf(epoch)
    if (publish(block, nowUs, false)) return
  }
}

/** One attempt to follow the policy that this thread knows. A rebase takes its numbers over and keeps debts to the letter. */
function publish(block: usize, nowUs: i64, isRebase: bool): bool {
  if (isRebase) {
    setField(block, BLOCK_UNITS_PER_US, unitsPerUs)
    setField(block, BLOCK_UNITS_PER_TOKEN, unitsPerToken)
    setField(block, BLOCK_CAPACITY, capacity)
    setField(block, BLOCK_PACKED, packed ? 1 : 0)
  }
  const rangeUs = field(block, BLOCK_PACKED) != 0 ? PACKED_US : ARRIVAL_UNITS / field(block, BLOCK_UNITS_PER_US)
  setField(block, BLOCK_BASE_US, nowUs - rangeUs / 8)
  setField(block, BLOCK_REBASE_AT_US, nowUs + rangeUs / 2)
  setField(block, BLOCK_SINCE_US, nowUs)
  setField(block, BLOCK_KEEPS_DEBT, isRebase ? 1 : 0)
  setField(block, BLOCK_PREVIOUS, <i64>(epochWord & 0xffffffff))
  const next = ((epoch + 1) << 32) | <u64>field(block, BLOCK_TICKET)
  if (!swap(EPOCH, epochWord, next)) {
    refresh()
    return false
  }
  reload()
  sweepShareOf(next >> 32)
  return true
}

/** A value written `lag` policies ago, as the policy in force writes it. */
export function converted(value: u64, lag: u64, ofBlock: bool): u64 {
  return expressed(value, lag, ofBlock, policyBlock(), epochWord & 0xffffffff)
}

function expressed(value: u64, lag: u64, ofBlock: bool, block: usize, ticket: u64): u64 {
  if (lag == 0) return value
  const previousTicket = <u64>field(block, BLOCK_PREVIOUS)
  const previous = blockAddress(previousTicket)
  const sinceUs = field(block, BLOCK_SINCE_US)
  if (field(previous, BLOCK_TICKET) != <i64>previousTicket) return spent(block, sinceUs, ofBlock)
  return carried(expressed(value, lag - 1, ofBlock, previous, previousTicket), ofBlock, previous, block, sinceUs)
}

/** spent' = min(spent, new burst), at the time of the change. Rounded up, so that nothing is given. */
function carried(value: u64, ofBlock: bool, from: usize, to: usize, sinceUs: i64): u64 {
  const usBefore = max<i64>(sinceUs - field(from, BLOCK_BASE_US), 0)
  const usAfter = sinceUs - field(to, BLOCK_BASE_US)
  if (ofBlock) return gcra.valueFor(max<i64>(gcra.debtOf(value, usBefore), 0), usAfter)
  const debt = max<i64>(debtIn(from, value, usBefore), 0)
  if (field(to, BLOCK_KEEPS_DEBT) != 0) return valueIn(to, debt, usAfter)
  const tokensTo = <u64>field(to, BLOCK_UNITS_PER_TOKEN)
  const carriedDebt = scaled(<u64>debt, tokensTo, <u64>field(from, BLOCK_UNITS_PER_TOKEN), <u64>field(to, BLOCK_CAPACITY))
  return valueIn(to, <i64>carriedDebt, usAfter)
}

/** The words before it are lost (64 changes went by unswept): all that can be said is what a key may have spent at most. */
function spent(block: usize, sinceUs: i64, ofBlock: bool): u64 {
  const us = sinceUs - field(block, BLOCK_BASE_US)
  return ofBlock ? gcra.valueFor(0, us) : valueIn(block, field(block, BLOCK_CAPACITY), us)
}

function debtIn(block: usize, value: u64, usAfterBase: i64): i64 {
  const perUs = field(block, BLOCK_UNITS_PER_US)
  // A key may have been idle for years: past the last value of a word it owes nothing, and the product must not wrap.
  const us = min<i64>(usAfterBase, PAST_ALL_UNITS / perUs)
  if (field(block, BLOCK_PACKED) != 0) return bucket.debtOf(value, us, perUs, field(block, BLOCK_CAPACITY))
  return gcra.debtOf(value, us * perUs)
}

function valueIn(block: usize, debt: i64, us: i64): u64 {
  const perUs = field(block, BLOCK_UNITS_PER_US)
  if (field(block, BLOCK_PACKED) != 0) return bucket.valueFor(debt, us, perUs, field(block, BLOCK_CAPACITY))
  return gcra.valueFor(debt, us * perUs)
}

/** min(ceil(debt * to / from), most), with a product of 128 bits, by long division. */
function scaled(debt: u64, to: u64, from: u64, most: u64): u64 {
  const whole = debt / from
  if (whole >= most / to + 1) return most
  let rest = debt % from
  // rest * to / from, one bit of `to` at a time from the top; every remainder stays below from < 2^53.
  let quotient: u64 = 0
  let remainder: u64 = 0
  for (let bit: i32 = 63 - <i32>clz<u64>(to); bit >= 0; bit--) {
    quotient <<= 1
    remainder <<= 1
    if ((to >> bit) & 1) remainder += rest
    while (remainder >= from) {
      remainder -= from
      quotient++
    }
  }
  return min<u64>(whole * to + quotient + (remainder > 0 ? 1 : 0), most)
}
