import { add, swap } from "./atomics"
import {
  BLOCK_BASE_US, BLOCK_CAPACITY, BLOCK_KEEPS_DEBT, BLOCK_PACKED, BLOCK_PREVIOUS, BLOCK_REBASE_AT_US, BLOCK_SINCE_US,
  BLOCK_SIZE, BLOCK_TICKET, BLOCK_UNITS_PER_TOKEN, BLOCK_UNITS_PER_US, EPOCH, TICKETS,
} from "./memory-map"
import { epoch, epochWord, isWithinRange, policyBlock, refresh } from "./policy"
import { blockAddress, field, setField, ticketOf } from "./policy-block"
import { finishSweepOf, sweepShareOf } from "./sweep"

// A change of policy, and of the time base, which is a change to the same policy with a later base.

/** Values stay below 2^56 when an arrival lies at most 2^55 units after the base and debt is below 2^53. */
const ARRIVAL_UNITS: i64 = 1 << 55
/** The same for 32 bits of 1,024 microseconds. */
const PACKED_US: i64 = 1 << 41

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

/** One attempt to follow the policy that this thread knows. `keepsDebt`: to the letter, not at most to the new burst. */
function publish(block: usize, nowUs: i64, keepsDebt: bool): bool {
  const rangeUs = field(block, BLOCK_PACKED) != 0 ? PACKED_US : ARRIVAL_UNITS / field(block, BLOCK_UNITS_PER_US)
  setField(block, BLOCK_BASE_US, nowUs - rangeUs / 8)
  setField(block, BLOCK_REBASE_AT_US, nowUs + rangeUs / 2)
  setField(block, BLOCK_SINCE_US, nowUs)
  setField(block, BLOCK_KEEPS_DEBT, keepsDebt ? 1 : 0)
  setField(block, BLOCK_PREVIOUS, <i64>ticketOf(epochWord))
  const next = ((epoch + 1) << 32) | <u64>field(block, BLOCK_TICKET)
  if (!swap(EPOCH, epochWord, next)) {
    refresh()
    return false
  }
  refresh()
  sweepShareOf(next >> 32)
  return true
}

/** Moves the time base up when `nowUs` has come too far from it for a state word; true when the caller must start again. */
@inline export function rebased(nowUs: i64): bool {
  if (isWithinRange(nowUs)) return false
  rebase(nowUs)
  return true
}

function rebase(nowUs: i64): void {
  const block = propose()
  // The same policy, ticket apart. Torn if another is published meanwhile, but then the swap fails.
  memory.copy(block + BLOCK_PREVIOUS, policyBlock() + BLOCK_PREVIOUS, BLOCK_SIZE - BLOCK_PREVIOUS)
  finishSweepOf(epoch)
  publish(block, nowUs, true)
}
