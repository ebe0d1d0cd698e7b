import { RECORD_CAPACITY, RECORD_ENCODING, RECORD_UNITS_PER_US } from "../memory-map"
import { BUCKET } from "../policy/encodings"
import { burst, capacity, encoding, isRate, unitsPerToken, unitsPerUs } from "../policy/policy"
import { field } from "../policy/policy-record"
import * as gcra from "./gcra"
import * as bucket from "./token-bucket"
import { BAN, CALL, CANCEL, DEEPEST_DEBT_BURSTS, RESERVE } from "./verbs"

// Debts of buckets and GCRA in units, and the values that hold them: first under the policy in force.

@inline export function debtAt(value: u64, us: i64): i64 {
  if (encoding == BUCKET) return bucket.debtOf(value, us, unitsPerUs, capacity)
  return gcra.debtOf(value, us * unitsPerUs)
}

@inline export function valueAt(debt: i64, us: i64): u64 {
  if (encoding == BUCKET) return bucket.valueFor(debt, us, unitsPerUs, capacity)
  return gcra.valueFor(debt, us * unitsPerUs)
}

/** The value of a ban is its end in microseconds since the base, under any policy. */
@inline export function banDebtAt(value: u64, us: i64): i64 {
  return gcra.debtOf(value, us)
}

@inline export function banValueAt(debt: i64, us: i64): u64 {
  return gcra.valueFor(debt, us)
}

/** More than any value of a state word. */
const PAST_ALL_UNITS: i64 = 1 << 57

// The same under the policy of any record.

export function debtIn(record: usize, value: u64, usAfterBase: i64): i64 {
  const perUs = field(record, RECORD_UNITS_PER_US)
  // A key may have been idle for years: past the last value of a word it owes nothing, and the product must not wrap.
  const us = min<i64>(usAfterBase, PAST_ALL_UNITS / perUs)
  if (<i32>field(record, RECORD_ENCODING) == BUCKET) return bucket.debtOf(value, us, perUs, field(record, RECORD_CAPACITY))
  return gcra.debtOf(value, us * perUs)
}

export function valueIn(record: usize, debt: i64, us: i64): u64 {
  const perUs = field(record, RECORD_UNITS_PER_US)
  if (<i32>field(record, RECORD_ENCODING) == BUCKET) return bucket.valueFor(debt, us, perUs, field(record, RECORD_CAPACITY))
  return gcra.valueFor(debt, us * perUs)
}

/**
 * Tokens in units. Under a bucket or GCRA, amounts above the deepest debt weigh no more than that, and the amounts of a cancel and
 * of a call with its own rate are in units already. The "tokens" of a ban are microseconds.
 */
@inline export function weight(verb: i32, tokens: i64): i64 {
  if (!isRate() || verb == BAN || verb == CANCEL || verb == CALL) return tokens
  return min<i64>(tokens, DEEPEST_DEBT_BURSTS * burst + 1) * unitsPerToken
}

/** The bound of a reservation: for buckets and GCRA the deepest debt, otherwise the longest wait. */
@inline export function boundOf(verb: i32, ofBan: bool, tokens: i64, bound: i64): i64 {
  if (verb != RESERVE || ofBan || !isRate()) return bound
  return tokens > burst ? 0 : capacity + bound * unitsPerUs
}
