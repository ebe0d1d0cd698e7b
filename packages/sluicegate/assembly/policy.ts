import { load } from "./atomics"
import * as fixed from "./fixed-window"
import { BUCKET } from "./forms"
import * as gcra from "./gcra"
import { policyChanged } from "./host"
import {
  BLOCK_BASE_US, BLOCK_CAPACITY, BLOCK_COMPANIONS, BLOCK_COUNT_BITS, BLOCK_ERA, BLOCK_FORM,
  BLOCK_REBASE_AT_US, BLOCK_SLOTS, BLOCK_SLOT_BYTES, BLOCK_STRIDE, BLOCK_TICK_US, BLOCK_UNITS_PER_TOKEN, BLOCK_UNITS_PER_US, BLOCK_WINDOW_US,
  EPOCH,
} from "./memory-map"
import { blockAddress, field, ticketIn, ticketOf, ticksOfWindow } from "./policy-block"
import { base } from "./section"
import * as sliding from "./sliding-window"
import * as bucket from "./token-bucket"
import { headOf, stateHead } from "./words"

// The policy in force: the epoch word names its block. A thread keeps a copy of the block's numbers in these globals and compares
// the epoch word at each take.

export let epochWord: u64 = 0
export let epoch: u64 = 0
export let unitsPerUs: i64 = 1
export let unitsPerToken: i64 = 1
export let capacity: i64 = 1
export let form: i32 = 0
export let burst: i64 = 1
/** Of windows and logs, in microseconds. */
export let windowUs: i64 = 0
/** Width of a count in a value. */
export let countBits: i64 = 0
/** Microseconds that one step of a value's number or time stands for. */
export let tickUs: i64 = 1
export let slots: i64 = 0
export let slotBytes: i64 = 8
export let companions: usize = 0
export let stride: usize = 0
export let era: i64 = 0
/** Of a log: ticks that make sure that a window is over. */
export let windowTicks: i64 = 0
export let baseUs: i64 = 0
let rebaseAtUs: i64 = 0
let currentHead: u64 = 0

/** Makes this thread's copy the policy in force. Called after a state word was read, so no word is newer than the copy. */
@inline export function refresh(): void {
  if (load(base + EPOCH) != epochWord) reload()
}

function reload(): void {
  while (true) {
    const word = load(base + EPOCH)
    const block = blockAddress(ticketOf(word))
    unitsPerUs = field(block, BLOCK_UNITS_PER_US)
    unitsPerToken = field(block, BLOCK_UNITS_PER_TOKEN)
    capacity = field(block, BLOCK_CAPACITY)
    burst = capacity / unitsPerToken
    form = <i32>field(block, BLOCK_FORM)
    windowUs = field(block, BLOCK_WINDOW_US)
    countBits = field(block, BLOCK_COUNT_BITS)
    tickUs = field(block, BLOCK_TICK_US)
    slots = field(block, BLOCK_SLOTS)
    slotBytes = field(block, BLOCK_SLOT_BYTES)
    companions = <usize>field(block, BLOCK_COMPANIONS)
    stride = <usize>field(block, BLOCK_STRIDE)
    era = field(block, BLOCK_ERA)
    windowTicks = ticksOfWindow(windowUs, tickUs)
    baseUs = field(block, BLOCK_BASE_US)
    rebaseAtUs = field(block, BLOCK_REBASE_AT_US)
    epochWord = word
    epoch = word >> 32
    currentHead = stateHead(epoch)
    fixed.forgetWindow()
    sliding.forgetWindow()
    policyChanged()
    if (isWhole()) return
  }
}

/** Whether what was read of this thread's policy block is whole: nobody has begun to write another policy there since. */
export function isWhole(): bool {
  return ticketIn(policyBlock()) == ticketOf(epochWord)
}

/** Nothing to load, convert or move first: the state is of the policy that this thread knows, which is in force at `nowUs`. */
@inline export function isOrdinary(state: u64, nowUs: i64): bool {
  return load(base + EPOCH) == epochWord && headOf(state) == currentHead && isWithinRange(nowUs)
}

/** Block of the policy in force, for JavaScript. */
export function policyBlock(): usize {
  return blockAddress(ticketOf(epochWord))
}

/** Microseconds since the time base. Before the base time stands still. */
@inline export function sinceBase(nowUs: i64): i64 {
  return max<i64>(nowUs - baseUs, 0)
}

/** Whether a state word of this time base can hold a debt at `nowUs`. */
@inline export function isWithinRange(nowUs: i64): bool {
  return nowUs <= rebaseAtUs
}

/** The latest time up to `us` at which a state word of this time base can hold a debt. */
@inline export function withinRange(us: i64): i64 {
  return min<i64>(us, rebaseAtUs)
}

/** How far ahead of now a state word of this time base may surely lie, in microseconds. */
export function mostAheadUs(): i64 {
  // Nearly a quarter of the range lies beyond the time by which the base moves; a debt has to be exact in a double, too.
  return isRate() ? (rebaseAtUs - baseUs) / 8 : (rebaseAtUs - baseUs) / 4 - windowUs
}

/** Whether the policy is a bucket or GCRA. */
@inline export function isRate(): bool {
  return form <= BUCKET
}

// A key's debt under a bucket or GCRA, and the value that holds it.

@inline export function debtAt(value: u64, us: i64): i64 {
  if (form == BUCKET) return bucket.debtOf(value, us, unitsPerUs, capacity)
  return gcra.debtOf(value, us * unitsPerUs)
}

@inline export function valueAt(debt: i64, us: i64): u64 {
  if (form == BUCKET) return bucket.valueFor(debt, us, unitsPerUs, capacity)
  return gcra.valueFor(debt, us * unitsPerUs)
}

/** A block's value is its end in microseconds since the base, whatever the policy. */
@inline export function blockDebtAt(value: u64, us: i64): i64 {
  return gcra.debtOf(value, us)
}

@inline export function blockValueAt(debt: i64, us: i64): u64 {
  return gcra.valueFor(debt, us)
}
