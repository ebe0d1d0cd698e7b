import {
  RECORD_BASE_US, RECORD_CAPACITY, RECORD_ENCODING, RECORD_KEEPS_DEBT, RECORD_PREVIOUS, RECORD_SINCE_US, RECORD_TICK_US,
  RECORD_UNITS_PER_TOKEN, RECORD_UNITS_PER_US, RECORD_WINDOW_US,
} from "../memory-map"
import { valueOf } from "../atomics/words"
import { BUCKET } from "../policy/encodings"
import { epochWord } from "../policy/policy"
import { field, recordAddress, sequenceIn, sequenceOf, ticksOfWindow } from "../policy/policy-record"
import * as gcra from "./gcra"
import { migratedWindow } from "./migrate-window"
import { debtIn, valueIn } from "./rate"
import { scaled } from "./wide-arithmetic"

// Migrates a state word of an older policy to the one in force: a pure function of the word and the records in between. So any
// thread may do it at any time. Migration of more than one word is in table/migrate.ts.

/** The value of a state word of `entry` that was written `lag` policies ago, in the encoding of the policy in force. */
@inline export function migratedValue(state: u64, lag: u64, entry: usize, ofBan: bool): u64 {
  return lag == 0 ? valueOf(state) : migratedThrough(valueOf(state), lag, entry, ofBan, sequenceOf(epochWord))
}

/** The record of the policy in force `lag` policies ago; 0 if another policy was written there since. */
export function recordOf(lag: u64): usize {
  let sequence = sequenceOf(epochWord)
  for (let i: u64 = 0; i < lag; i++) {
    sequence = <u64>field(recordAddress(sequence), RECORD_PREVIOUS)
    if (sequenceIn(recordAddress(sequence)) != sequence) return 0
  }
  return recordAddress(sequence)
}

/** The largest count that can remain after the last `lag` changes of policy. */
export function countLimitAfter(lag: u64): i64 {
  let most: i64 = i64.MAX_VALUE
  let record = recordAddress(sequenceOf(epochWord))
  for (let i: u64 = 0; i < lag; i++) {
    if (field(record, RECORD_KEEPS_DEBT) == 0) most = min<i64>(most, field(record, RECORD_CAPACITY))
    record = recordAddress(<u64>field(record, RECORD_PREVIOUS))
  }
  return most
}

/** The first of the last `lag` changes that changed numbers, as how many changes ago it came; 0 if none did. */
export function firstNewNumbers(lag: u64): u64 {
  let first: u64 = 0
  let record = recordAddress(sequenceOf(epochWord))
  for (let i: u64 = 1; i <= lag; i++) {
    if (field(record, RECORD_KEEPS_DEBT) == 0) first = i
    record = recordAddress(<u64>field(record, RECORD_PREVIOUS))
  }
  return first
}

/**
 * The time by which all of a log had expired when one of the last `lag` policies ended, in microseconds. A log whose newest
 * request lies ahead is read as of then.
 */
export function expiredBy(lag: u64, lastUs: i64): i64 {
  let latestUs: i64 = i64.MIN_VALUE
  let record = recordAddress(sequenceOf(epochWord))
  for (let i: u64 = 0; i < lag; i++) {
    const before = recordAddress(<u64>field(record, RECORD_PREVIOUS))
    if (field(record, RECORD_KEEPS_DEBT) == 0) {
      const tickUs = max<i64>(field(before, RECORD_TICK_US), 1)
      const nowTick = (max<i64>(field(record, RECORD_SINCE_US), lastUs) + tickUs - 1) / tickUs
      latestUs = max<i64>(latestUs, (nowTick - ticksOfWindow(field(before, RECORD_WINDOW_US), tickUs)) * tickUs)
    }
    record = before
  }
  return latestUs
}

function migratedThrough(value: u64, lag: u64, entry: usize, ofBan: bool, sequence: u64): u64 {
  if (lag == 0) return value
  const record = recordAddress(sequence)
  const previousSequence = <u64>field(record, RECORD_PREVIOUS)
  const previous = recordAddress(previousSequence)
  const sinceUs = field(record, RECORD_SINCE_US)
  if (sequenceIn(previous) != previousSequence) return mostSpent(record, sinceUs, ofBan)
  return migratedOnce(migratedThrough(value, lag - 1, entry, ofBan, previousSequence), entry, ofBan, previous, record, sinceUs)
}

/** spent' = min(spent, new burst), at the time of the change. Rounded up, so that no tokens are given away. */
function migratedOnce(value: u64, entry: usize, ofBan: bool, from: usize, to: usize, sinceUs: i64): u64 {
  const usAfter = sinceUs - field(to, RECORD_BASE_US)
  const usSince = sinceUs - field(from, RECORD_BASE_US)
  // The end of a ban stays, also when the clock stepped back to before the base.
  if (ofBan) return gcra.valueFor(gcra.debtOf(value, usSince), usAfter)
  const usBefore = max<i64>(usSince, 0)
  if (field(from, RECORD_ENCODING) > BUCKET) return migratedWindow(value, entry, from, to, sinceUs)
  const owed = debtIn(from, value, usBefore)
  if (field(to, RECORD_KEEPS_DEBT) != 0) return sameDebt(to, owed, usAfter)
  const debt = max<i64>(owed, 0)
  const tokensTo = <u64>field(to, RECORD_UNITS_PER_TOKEN)
  const migratedDebt = scaled(<u64>debt, tokensTo, <u64>field(from, RECORD_UNITS_PER_TOKEN), <u64>field(to, RECORD_CAPACITY))
  return valueIn(to, <i64>migratedDebt, usAfter)
}

/** With the same numbers the debt stays exact: a key that has owed nothing for some time keeps that if the clock steps back. */
export function sameDebt(record: usize, debt: i64, us: i64): u64 {
  if (debt >= 0) return valueIn(record, debt, us)
  const perUs = field(record, RECORD_UNITS_PER_US)
  const sinceUs = (perUs - 1 - debt) / perUs
  return sinceUs > us ? valueIn(record, 0, 0) : valueIn(record, debt + sinceUs * perUs, us - sinceUs)
}

/**
 * The records before `record` are gone: this thread paused for many changes. For a bucket the result is the most that may be
 * spent, for windows, logs and permits nothing. Neither value has an effect: every state word was migrated since, so a swap by
 * this thread from the word it read fails, and a denial or a peek reads that word again and starts over.
 */
function mostSpent(record: usize, sinceUs: i64, ofBan: bool): u64 {
  const us = sinceUs - field(record, RECORD_BASE_US)
  if (ofBan) return gcra.valueFor(0, us)
  return field(record, RECORD_ENCODING) > BUCKET ? 0 : valueIn(record, field(record, RECORD_CAPACITY), us)
}
