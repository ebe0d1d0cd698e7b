import { add, load, store, swap } from "./atomics"
import { pause } from "./host"
import {
  BLOCK_BASE_US, BLOCK_CALENDAR, BLOCK_COUNT, BLOCK_COUNT_BITS, BLOCK_EPOCH, BLOCK_ERA,
  BLOCK_FORM, BLOCK_KEEPS_DEBT, BLOCK_NUMBER_BITS, BLOCK_PREVIOUS, BLOCK_REBASE_AT_US, BLOCK_SINCE_US, BLOCK_SIZE, BLOCK_STRIDE, BLOCK_TICKET,
  BLOCK_TICK_US, BLOCK_UNITS_PER_US, BLOCK_WINDOW_US, EPOCH, TICKETS,
} from "./memory-map"
import { epoch, epochWord, isWithinRange, policyBlock, refresh } from "./policy"
import { blockAddress, field, setField, ticketIn, ticketOf } from "./policy-block"
import { base } from "./section"
import { finishSweepOf, sweepShareOf } from "./sweep"

// A change of policy, and of the time base, which is a change to the same policy with a later base.

/** What 56 bits hold: half of it for a clock that steps back, a quarter until the next move, the rest for debt, below 2^53. */
const ARRIVAL_UNITS: i64 = 1 << 56
/** No time base lasts longer: 570 years, so that the end of any block fits a value. */
const LONGEST_US: i64 = 1 << 54

/** Policies in a row whose time bases are apart, unless a window is so long that there is no room for it. */
const MOST_APART: i64 = 4096

/** In a block's ticket: somebody is writing. */
const WRITING: u64 = 1 << 32
/** Blocks of so many policies back are kept: state words lag by at most 7, and a thread that reads one may lag itself. */
const KEPT_EPOCHS: u64 = 16
/** Blocks tried, most of them with a pause, before those still being written count as abandoned: about half a second. */
const PATIENCE: i32 = 512

/** A block of this thread's own, to be filled and published. */
export function propose(): usize {
  let tries = -1
  while (true) {
    tries++
    if (tries >= BLOCK_COUNT) pause(tries)
    const ticket = ticketOf(add(base + TICKETS, 1))
    const block = blockAddress(ticket)
    const before = load(block + BLOCK_TICKET)
    if ((before & WRITING) != 0 && tries < PATIENCE) continue
    const epochOfBlock = <u64>field(block, BLOCK_EPOCH)
    if (epochOfBlock != 0 && (load(base + EPOCH) >> 32) < epochOfBlock + KEPT_EPOCHS) continue
    // Lost only to another who wants the same block, 64 tickets on.
    if (swap(block + BLOCK_TICKET, before, ticket | WRITING)) return block
  }
}

/** Its holder writes no more. */
function close(block: usize): void {
  store(block + BLOCK_TICKET, ticketIn(block))
}

/** Brings this thread up to date with the policy in force, and the table as far as the next change needs it. */
export function prepare(): bool {
  let swept: u64
  do {
    refresh()
    swept = epoch
    if (!finishSweepOf(swept)) return false
    // Sweeping looks at the policy too, and may have met one whose share is not swept yet.
  } while (epoch != swept)
  return true
}

/**
 * What came of a proposal. Another thread was quicker: count it out again, as keys may have their companions elsewhere by now, and what
 * was free for them may be in use, though it be the same places again.
 */
export const OVERTAKEN: i32 = 0
export const IN_FORCE: i32 = 1
/** Words of an older policy could not be carried over. */
export const GIVEN_UP: i32 = 2

/** Puts a proposed block, with all the numbers that JavaScript counts out, in force from `nowUs` on. */
export function update(block: usize, nowUs: i64, seenEpoch: u64): i32 {
  let outcome = OVERTAKEN
  while (outcome == OVERTAKEN) {
    if (!prepare()) outcome = GIVEN_UP
    else if (epoch != seenEpoch) break
    else if (publish(block, nowUs, false)) outcome = IN_FORCE
  }
  // One that nobody follows is needed by no state word.
  if (outcome != IN_FORCE) setField(block, BLOCK_EPOCH, 0)
  close(block)
  return outcome
}

/** One attempt to follow the policy that this thread knows. `keepsDebt`: to the letter, not at most to the new burst. */
function publish(block: usize, nowUs: i64, keepsDebt: bool): bool {
  const rangeUs = rangeOf(block)
  const tickUs = max<i64>(field(block, BLOCK_TICK_US), 1)
  setField(block, BLOCK_BASE_US, wholeTicks(nowUs - rangeUs / 2, tickUs) - ticksApart(rangeUs, tickUs) * tickUs)
  setField(block, BLOCK_REBASE_AT_US, nowUs + rangeUs / 4)
  setField(block, BLOCK_SINCE_US, nowUs)
  // What changes no number changes nothing about a key either, such as what is booked ahead.
  setField(block, BLOCK_KEEPS_DEBT, keepsDebt || (epoch != 0 && hasNumbersOf(block, policyBlock())) ? 1 : 0)
  setField(block, BLOCK_PREVIOUS, <i64>ticketOf(epochWord))
  setField(block, BLOCK_EPOCH, <i64>(epoch + 1))
  if (epoch != 0 && !keepsDebt) inherit(block, policyBlock())
  const next = ((epoch + 1) << 32) | ticketIn(block)
  if (!swap(base + EPOCH, epochWord, next)) {
    refresh()
    return false
  }
  refresh()
  sweepShareOf(next >> 32)
  return true
}

/**
 * Ticks by which the base of the next policy lies farther back, another number for each: a state word has three bits of its epoch, and
 * a thread that pauses for eight changes must not find the word that it had read, as of another policy. What a key has spent reads
 * differently from each base.
 */
function ticksApart(rangeUs: i64, tickUs: i64): i64 {
  return <i64>(epoch + 1) % max<i64>(min<i64>(MOST_APART, rangeUs / 32 / tickUs), 1)
}

/** Whether the core reads the same in both blocks. */
function hasNumbersOf(block: usize, other: usize): bool {
  for (let offset = BLOCK_UNITS_PER_US; offset <= BLOCK_STRIDE; offset += 8) {
    if (field(block, offset) != field(other, offset)) return false
  }
  return field(block, BLOCK_CALENDAR) == field(other, BLOCK_CALENDAR)
}

/** For how long a time base lasts. */
function rangeOf(block: usize): i64 {
  const bits = field(block, BLOCK_NUMBER_BITS)
  if (bits == 0) return ARRIVAL_UNITS / field(block, BLOCK_UNITS_PER_US)
  const tickUs = field(block, BLOCK_TICK_US)
  return tickUs >= LONGEST_US >> bits ? LONGEST_US - (LONGEST_US % tickUs) : tickUs << bits
}

@inline function wholeTicks(us: i64, tickUs: i64): i64 {
  const into = us % tickUs
  return us - (into < 0 ? into + tickUs : into)
}

/** What a policy of windows has to know of the one before it. */
function inherit(block: usize, before: usize): void {
  const sameWindows = field(block, BLOCK_WINDOW_US) == field(before, BLOCK_WINDOW_US)
  const sameWords = field(block, BLOCK_FORM) == field(before, BLOCK_FORM) && field(block, BLOCK_COUNT_BITS) == field(before, BLOCK_COUNT_BITS)
  setField(block, BLOCK_ERA, field(before, BLOCK_ERA) + (sameWindows && sameWords ? 0 : 1))
}

/** Moves the time base up when `nowUs` has come too far from it for a state word; true when the caller must start again. */
@inline export function rebased(nowUs: i64): bool {
  if (isWithinRange(nowUs)) return false
  rebase(nowUs)
  return true
}

function rebase(nowUs: i64): void {
  const block = propose()
  const prepared = prepare()
  // The same policy, ticket apart. Torn if another is published meanwhile, but then the swap fails.
  memory.copy(block + BLOCK_PREVIOUS, policyBlock() + BLOCK_PREVIOUS, BLOCK_SIZE - BLOCK_PREVIOUS)
  if (!prepared || isWithinRange(nowUs) || !publish(block, nowUs, true)) setField(block, BLOCK_EPOCH, 0)
  close(block)
}
