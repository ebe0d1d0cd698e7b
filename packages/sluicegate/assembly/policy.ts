import { load } from "./atomics"
import * as gcra from "./gcra"
import { policyChanged } from "./host"
import {
  BLOCK_BASE_US, BLOCK_CAPACITY, BLOCK_PACKED, BLOCK_REBASE_AT_US, BLOCK_UNITS_PER_TOKEN, BLOCK_UNITS_PER_US, EPOCH,
} from "./memory-map"
import { blockAddress, field, ticketIn, ticketOf } from "./policy-block"
import * as bucket from "./token-bucket"
import { headOf, stateHead } from "./words"

// The policy in force: the epoch word names its block. A thread keeps a copy of the block's numbers in these globals and compares
// the epoch word at each take.

export let epochWord: u64 = 0
export let epoch: u64 = 0
export let unitsPerUs: i64 = 1
export let unitsPerToken: i64 = 1
export let capacity: i64 = 1
export let packed: bool = false
export let burst: i64 = 1
let baseUs: i64 = 0
let rebaseAtUs: i64 = 0
let currentHead: u64 = 0

/** Makes this thread's copy the policy in force. Called after a state word was read, so no word is newer than the copy. */
@inline export function refresh(): void {
  if (load(EPOCH) != epochWord) reload()
}

function reload(): void {
  while (true) {
    const word = load(EPOCH)
    const block = blockAddress(ticketOf(word))
    unitsPerUs = field(block, BLOCK_UNITS_PER_US)
    unitsPerToken = field(block, BLOCK_UNITS_PER_TOKEN)
    capacity = field(block, BLOCK_CAPACITY)
    burst = capacity / unitsPerToken
    packed = field(block, BLOCK_PACKED) != 0
    baseUs = field(block, BLOCK_BASE_US)
    rebaseAtUs = field(block, BLOCK_REBASE_AT_US)
    epochWord = word
    epoch = word >> 32
    currentHead = stateHead(epoch)
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
  return load(EPOCH) == epochWord && headOf(state) == currentHead && isWithinRange(nowUs)
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

// A key's debt, and the value that holds it.

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
