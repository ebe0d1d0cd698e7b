import { debt, setDebt } from "../results"
import { BUCKET, CONCURRENCY, FIXED, LOG } from "../policy/encodings"
import { capacity, encoding, sinceBase, unitsPerToken, unitsPerUs, withinRange } from "../policy/policy"
import * as concurrency from "./concurrency"
import * as fixed from "./fixed-window"
import { banDebtAt, banValueAt, debtAt, valueAt } from "./rate"
import * as log from "./sliding-log"
import * as sliding from "./sliding-window"
import { step } from "./verbs"

// A key's state under the policy in force, whatever its encoding. Each algorithm remembers the key that it last read or changed,
// so that a following question need not read it again.

/** The debt of a key. `us` is since the time base. */
export function debtOf(ofBan: bool, entry: usize, value: u64, us: i64): i64 {
  if (ofBan) return banDebtAt(value, us)
  if (encoding <= BUCKET) return debtAt(value, us)
  if (encoding == FIXED) return fixed.debtOf(value, us)
  if (encoding == LOG) return log.debtOf(entry, value, us)
  if (encoding == CONCURRENCY) return concurrency.debtOf(entry, value, us)
  return sliding.debtOf(entry, value, us)
}

/** Whether the last step changes anything. A log may keep its value and change the ring's header. */
@inline export function isChange(value: u64, next: u64): bool {
  return next != value || (encoding == LOG && log.alsoNeeded != log.NOTHING)
}

/** Whether all that was read beside the state word is unchanged, given that the state word is and no swap follows. */
export function isUnchanged(entry: usize, ofBan: bool): bool {
  return ofBan || encoding != LOG || log.isUnchanged(entry)
}

/** Whether the key as last read lies ahead of the clock that it was read by. */
export function isAhead(): bool {
  if (encoding <= BUCKET || encoding == CONCURRENCY) return false
  if (encoding == FIXED) return fixed.isClosed()
  return encoding == LOG ? log.isClosed() : sliding.isClosed()
}

/** The value after the verb, unchanged if nothing changes; sets `debt`. An `entry` of 0 stands for a key outside of the table. */
export function stepped(verb: i32, ofBan: bool, entry: usize, value: u64, us: i64, amount: i64, bound: i64): u64 {
  let next: u64
  log.clearNeeded()
  if (ofBan || encoding <= BUCKET) {
    const owed = max<i64>(ofBan ? banDebtAt(value, us) : debtAt(value, us), 0)
    setDebt(step(verb, owed, amount, capacity, unitsPerToken, unitsPerUs, bound))
    if (debt == owed) return value
    return ofBan ? banValueAt(debt, us) : valueAt(debt, us)
  } else if (encoding == FIXED) {
    next = fixed.stepped(verb, value, us, amount, bound)
    setDebt(fixed.debtNow())
  } else if (encoding == LOG) {
    next = log.stepped(verb, entry, value, us, amount, bound)
    setDebt(log.debtNow())
  } else if (encoding == CONCURRENCY) {
    setDebt(concurrency.debtOf(entry, value, us))
    next = value
  } else {
    next = sliding.stepped(verb, entry, value, us, amount, bound)
    setDebt(sliding.debtNow())
  }
  return next
}

/** The value of a key that arrives at `nowUs`. If a key was evicted by a later time, `forgottenByUs`, it counts from then. */
export function newValue(ofBan: bool, nowUs: i64, forgottenByUs: i64): u64 {
  const us = sinceBase(nowUs)
  const sinceUs = max<i64>(sinceBase(withinRange(forgottenByUs)), us)
  if (ofBan) return banValueAt(0, us)
  if (sinceUs == us) return idleValue()
  if (encoding <= BUCKET) return valueAt((sinceUs - us) * unitsPerUs, us)
  if (encoding == CONCURRENCY) return concurrency.emptyValue(sinceUs)
  // The key is closed until then.
  if (encoding == FIXED) return fixed.emptyValue(sinceUs)
  return encoding == LOG ? log.emptyValue(sinceUs) : sliding.emptyValue(sinceUs)
}

/** A value that owes nothing at any time. */
@inline export function idleValue(): u64 {
  return encoding <= BUCKET ? valueAt(0, 0) : 0
}

/** Microseconds until `amount` more would pass, for the key as last read or changed; not for buckets and GCRA. */
export function untilFree(amount: i64): i64 {
  if (encoding == FIXED) return fixed.untilFree(amount)
  if (encoding == LOG) return log.untilFree(amount)
  if (encoding == CONCURRENCY) return concurrency.untilFree(amount)
  return sliding.untilFree(amount)
}

/** Microseconds until the key owes nothing, likewise. */
export function untilNew(): i64 {
  if (encoding == FIXED) return fixed.untilNew()
  if (encoding == LOG) return log.untilNew()
  if (encoding == CONCURRENCY) return concurrency.untilNew()
  return sliding.untilNew()
}
