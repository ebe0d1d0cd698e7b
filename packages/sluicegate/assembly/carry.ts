import * as gcra from "./gcra"
import {
  BLOCK_BASE_US, BLOCK_CAPACITY, BLOCK_FORM, BLOCK_KEEPS_DEBT, BLOCK_PREVIOUS, BLOCK_SINCE_US, BLOCK_TICK_US, BLOCK_UNITS_PER_TOKEN,
  BLOCK_UNITS_PER_US, BLOCK_WINDOW_US,
} from "./memory-map"
import { BUCKET } from "./forms"
import { epochWord } from "./policy"
import { blockAddress, debtIn, field, ticketIn, ticketOf, ticksOfWindow, valueIn as valueInBlock } from "./policy-block"
import { carriedWindow } from "./carry-window"
import { valueOf } from "./words"

// A state word of an older policy, carried over to the one in force: a pure function of the word and the blocks in between, so
// that it does not matter which thread does it, or when. What more than one word belongs to is carried over in sweep.ts.

/** The value of a state word of `entry` that was written `lag` policies ago, as the policy in force writes it. */
@inline export function valueIn(state: u64, lag: u64, entry: usize, ofBlock: bool): u64 {
  return lag == 0 ? valueOf(state) : expressed(valueOf(state), lag, entry, ofBlock, ticketOf(epochWord))
}

/** The block of the policy in force `lag` policies ago; 0 when another policy was written there since. */
export function blockOf(lag: u64): usize {
  let ticket = ticketOf(epochWord)
  for (let i: u64 = 0; i < lag; i++) {
    ticket = <u64>field(blockAddress(ticket), BLOCK_PREVIOUS)
    if (ticketIn(blockAddress(ticket)) != ticket) return 0
  }
  return blockAddress(ticket)
}

/** The most that a count may be that has come through the last `lag` changes of policy. */
export function mostAfter(lag: u64): i64 {
  let most: i64 = i64.MAX_VALUE
  let block = blockAddress(ticketOf(epochWord))
  for (let i: u64 = 0; i < lag; i++) {
    if (field(block, BLOCK_KEEPS_DEBT) == 0) most = min<i64>(most, field(block, BLOCK_CAPACITY))
    block = blockAddress(<u64>field(block, BLOCK_PREVIOUS))
  }
  return most
}

/**
 * The time by which everything of a log was over when one of the last `lag` policies came to an end, in microseconds. A log whose
 * newest request lies ahead is read as of then.
 */
export function overBy(lag: u64, lastUs: i64): i64 {
  let latestUs: i64 = i64.MIN_VALUE
  let block = blockAddress(ticketOf(epochWord))
  for (let i: u64 = 0; i < lag; i++) {
    const before = blockAddress(<u64>field(block, BLOCK_PREVIOUS))
    if (field(block, BLOCK_KEEPS_DEBT) == 0) {
      const tickUs = max<i64>(field(before, BLOCK_TICK_US), 1)
      const nowTick = (max<i64>(field(block, BLOCK_SINCE_US), lastUs) + tickUs - 1) / tickUs
      latestUs = max<i64>(latestUs, (nowTick - ticksOfWindow(field(before, BLOCK_WINDOW_US), tickUs)) * tickUs)
    }
    block = before
  }
  return latestUs
}

function expressed(value: u64, lag: u64, entry: usize, ofBlock: bool, ticket: u64): u64 {
  if (lag == 0) return value
  const block = blockAddress(ticket)
  const previousTicket = <u64>field(block, BLOCK_PREVIOUS)
  const previous = blockAddress(previousTicket)
  const sinceUs = field(block, BLOCK_SINCE_US)
  if (ticketIn(previous) != previousTicket) return spent(block, sinceUs, ofBlock)
  return carried(expressed(value, lag - 1, entry, ofBlock, previousTicket), entry, ofBlock, previous, block, sinceUs)
}

/** spent' = min(spent, new burst), at the time of the change. Rounded up, so that nothing is given. */
function carried(value: u64, entry: usize, ofBlock: bool, from: usize, to: usize, sinceUs: i64): u64 {
  const usAfter = sinceUs - field(to, BLOCK_BASE_US)
  const usSince = sinceUs - field(from, BLOCK_BASE_US)
  // A block ends, or has ended, when it does, also when the clock stepped back to before the base.
  if (ofBlock) return gcra.valueFor(gcra.debtOf(value, usSince), usAfter)
  const usBefore = max<i64>(usSince, 0)
  if (field(from, BLOCK_FORM) > BUCKET) return carriedWindow(value, entry, from, to, sinceUs)
  const owed = debtIn(from, value, usBefore)
  if (field(to, BLOCK_KEEPS_DEBT) != 0) return keptIn(to, owed, usAfter)
  const debt = max<i64>(owed, 0)
  const tokensTo = <u64>field(to, BLOCK_UNITS_PER_TOKEN)
  const carriedDebt = scaled(<u64>debt, tokensTo, <u64>field(from, BLOCK_UNITS_PER_TOKEN), <u64>field(to, BLOCK_CAPACITY))
  return valueInBlock(to, <i64>carriedDebt, usAfter)
}

/** With the same numbers, to the letter: a key that owes nothing since some time goes on so, should the clock step back. */
function keptIn(block: usize, debt: i64, us: i64): u64 {
  if (debt >= 0) return valueInBlock(block, debt, us)
  const perUs = field(block, BLOCK_UNITS_PER_US)
  const sinceUs = (perUs - 1 - debt) / perUs
  return sinceUs > us ? valueInBlock(block, 0, 0) : valueInBlock(block, debt + sinceUs * perUs, us - sinceUs)
}

/**
 * The blocks before it are gone: this thread paused for many changes. All that can be said of a bucket is what it may have spent at
 * most, of windows, logs and permits nothing. Neither reaches anybody: every state word was carried over since, so that no swap of
 * this thread from the word it read can succeed any more, and a denial or a peek looks at that word once more and starts again.
 */
function spent(block: usize, sinceUs: i64, ofBlock: bool): u64 {
  const us = sinceUs - field(block, BLOCK_BASE_US)
  if (ofBlock) return gcra.valueFor(0, us)
  return field(block, BLOCK_FORM) > BUCKET ? 0 : valueInBlock(block, field(block, BLOCK_CAPACITY), us)
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
