import * as concurrency from "./concurrency"
import * as fixed from "./fixed-window"
import { BUCKET, COMPACT, CONCURRENCY, FIXED, LOG } from "./forms"
import { blockDebtAt, blockValueAt, capacity, debtAt, form, sinceBase, unitsPerToken, unitsPerUs, valueAt, withinRange } from "./policy"
import * as logWaits from "./log-waits"
import * as log from "./sliding-log"
import * as sliding from "./sliding-window"
import { step } from "./verbs"

// How a key stands under the policy in force, whatever its form. Each form remembers the key that it last read or changed, so
// that whoever asks next need not read it again.

/** Debt of the key as last read or changed: units of the policy, of a block microseconds. */
export let debt: i64 = 0

/** What a key owes. `us` is since the time base. */
export function debtOf(ofBlock: bool, entry: usize, value: u64, us: i64): i64 {
  if (ofBlock) return blockDebtAt(value, us)
  if (form <= BUCKET) return debtAt(value, us)
  if (form == FIXED) return fixed.debtOf(value, us)
  if (form == LOG) return log.debtOf(entry, value, us)
  if (form == CONCURRENCY) return concurrency.debtOf(entry, value, us)
  return sliding.debtOf(entry, value, us)
}

/** Whether the last step changes something: of a log the value may stay, and the ring's header change, or of a compact counter neither. */
@inline export function isChange(value: u64, next: u64): bool {
  return next != value || (form == LOG && log.alsoNeeded != log.NOTHING) || (form == COMPACT && sliding.hidden)
}

/** Whether what was read beside the state word still stands, when that does and nothing is to be swapped. */
export function stillStands(entry: usize, ofBlock: bool): bool {
  return ofBlock || form != LOG || log.stillStands(entry)
}

/** Whether the key as last read lies ahead of the clock that it was read by. */
export function isAhead(): bool {
  if (form <= BUCKET || form == CONCURRENCY) return false
  if (form == FIXED) return fixed.isClosed()
  return form == LOG ? log.isClosed() : sliding.isClosed()
}

/** The value after the verb, the same when nothing changes; sets `debt`. An `entry` of 0 is a key that lives nowhere. */
export function stepped(verb: i32, ofBlock: bool, entry: usize, value: u64, us: i64, amount: i64, bound: i64): u64 {
  let next: u64
  log.needNothing()
  sliding.hideNothing()
  if (ofBlock || form <= BUCKET) {
    const owed = max<i64>(ofBlock ? blockDebtAt(value, us) : debtAt(value, us), 0)
    debt = step(verb, owed, amount, capacity, unitsPerToken, unitsPerUs, bound)
    if (debt == owed) return value
    return ofBlock ? blockValueAt(debt, us) : valueAt(debt, us)
  } else if (form == FIXED) {
    next = fixed.stepped(verb, value, us, amount, bound)
    debt = fixed.debtNow()
  } else if (form == LOG) {
    next = log.stepped(verb, entry, value, us, amount, bound)
    debt = log.debtNow()
  } else if (form == CONCURRENCY) {
    debt = concurrency.debtOf(entry, value, us)
    next = value
  } else {
    next = sliding.stepped(verb, entry, value, us, amount, bound)
    debt = sliding.debtNow()
  }
  return next
}

/** The value of a key that comes at `nowUs`, when no key was forgotten later than by `forgottenByUs`: it counts from then. */
export function newValue(ofBlock: bool, nowUs: i64, forgottenByUs: i64): u64 {
  const us = sinceBase(nowUs)
  const sinceUs = max<i64>(sinceBase(withinRange(forgottenByUs)), us)
  if (ofBlock) return blockValueAt(0, us)
  if (sinceUs == us) return idleValue()
  if (form <= BUCKET) return valueAt((sinceUs - us) * unitsPerUs, us)
  if (form == CONCURRENCY) return concurrency.emptyValue(sinceUs)
  // It is closed until then.
  if (form == FIXED) return fixed.emptyValue(sinceUs)
  return form == LOG ? log.emptyValue(sinceUs) : sliding.emptyValue(sinceUs)
}

/** A value that owes nothing at any time. */
@inline export function idleValue(): u64 {
  return form <= BUCKET ? valueAt(0, 0) : 0
}

/** Microseconds until `amount` more would pass, for the key as last read or changed; not for buckets and GCRA. */
export function untilFree(amount: i64): i64 {
  if (form == FIXED) return fixed.untilFree(amount)
  if (form == LOG) return logWaits.untilFree(amount)
  if (form == CONCURRENCY) return concurrency.untilFree(amount)
  return sliding.untilFree(amount)
}

/** Microseconds until the key is as good as new, likewise. */
export function untilNew(): i64 {
  if (form == FIXED) return fixed.untilNew()
  if (form == LOG) return logWaits.untilNew()
  if (form == CONCURRENCY) return concurrency.untilNew()
  return sliding.untilNew()
}
