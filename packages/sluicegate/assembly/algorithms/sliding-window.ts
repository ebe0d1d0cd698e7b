import { setWait } from "../results"
import { WIDE } from "../policy/encodings"
import {
  baseUs, capacity, countBits, encoding, setNumberedWindow, windowBeginUs, windowEndUs, windowNumber, windowUs,
} from "../policy/policy"
import { isSealed, numberAndCount, previousCount } from "./previous-count"
import { CANCEL, PENALIZE, REFUND, RESERVE, RESET, TAKE, deepestCount } from "./verbs"
import { quotient, quotientUp } from "./wide-arithmetic"

// Approximated sliding window: the count of the current window, and the count of the previous one, which counts in proportion to
// its part of the sliding window. Two encodings of one value:
//
//   packed    window number 24 | previous count 16 | current count 16
//   wide      sealed | window number | current count, and the previous count in the entry's extension
//
// Windows are aligned to UTC, numbers count from the time base. A window later than now is closed until it begins, as in
// fixed-window.ts.

// The key as last read or changed, and when.
let number: i64 = 0
let previous: i64 = 0
let current: i64 = 0
let atUs: i64 = 0

function read(entry: usize, value: u64, us: i64): void {
  if (us < windowBeginUs || us >= windowEndUs) setNumberedWindow(us / windowUs)
  atUs = us
  decode(entry, value)
  advance(windowNumber)
}

function decode(entry: usize, value: u64): void {
  if (encoding == WIDE) {
    const word = numberAndCount(value)
    number = <i64>(word >> <u64>countBits)
    current = <i64>(word & ((<u64>1 << <u64>countBits) - 1))
    if (isSealed(value)) {
      // No thread can add to this count any more: it is the previous window already.
      number++
      previous = current
      current = 0
    } else previous = entry == 0 ? 0 : previousCount(entry, number)
    return
  }
  number = <i64>(value >> 32)
  previous = <i64>((value >> 16) & 0xffff)
  current = <i64>(value & 0xffff)
}

function encoded(): u64 {
  if (encoding == WIDE) return (<u64>number << <u64>countBits) | <u64>current
  return (<u64>number << 32) | (<u64>previous << 16) | <u64>current
}

/** Moves on to window `to`, unless the key is there or beyond. */
@inline function advance(to: i64): void {
  if (number >= to) return
  previous = number == to - 1 ? current : 0
  current = 0
  number = to
}

@inline export function isClosed(): bool {
  return number * windowUs > atUs
}

@inline function usedAt(us: i64): i64 {
  return current + (previous == 0 ? 0 : quotientUp(previous, (number + 1) * windowUs - us, windowUs))
}

/** A key that has spent nothing but is closed until the window around `us`. */
export function emptyValue(us: i64): u64 {
  number = us / windowUs
  previous = 0
  current = 0
  return encoded()
}

/** The window of a value in the wide encoding. */
@inline export function newestNumber(value: u64): i64 {
  return <i64>(numberAndCount(value) >> <u64>countBits)
}

export function debtOf(entry: usize, value: u64, us: i64): i64 {
  read(entry, value, us)
  return debtNow()
}

/** For the key as last read or changed. */
export function debtNow(): i64 {
  return isClosed() ? capacity : usedAt(atUs)
}

/**
 * The value after the verb, unchanged if nothing changes. `bound`: what is held beside a take, the longest wait of a reservation, or the
 * time of a cancelled one.
 */
export function stepped(verb: i32, entry: usize, value: u64, us: i64, amount: i64, bound: i64): u64 {
  read(entry, value, us)
  let spent = current
  if (verb == TAKE) {
    if (isClosed() || usedAt(us) + amount > capacity - bound) return value
    spent = current + amount
  } else if (verb == REFUND) spent = max<i64>(current - amount, 0)
  else if (verb == PENALIZE) spent = max<i64>(current, min<i64>(current + amount, deepest()))
  else if (verb == RESET) {
    number = us / windowUs
    previous = 0
    current = 0
    return 0
  } else if (verb == RESERVE) {
    if (amount > capacity) return value
    const earliest = earliestUs(amount)
    if (earliest - us > bound) return value
    setWait(earliest - us)
    advance(earliest / windowUs)
    spent = current + amount
    return changed(spent)
  } else if (verb == CANCEL) {
    const dueUs = bound - baseUs
    if (number == dueUs / windowUs) spent = max<i64>(current - amount, 0)
    // Of one that is not due yet others may lie behind: they lie no sooner than before.
    else if (number == dueUs / windowUs + 1 && dueUs > us && encoding != WIDE) return changedBefore(max<i64>(previous - amount, 0), value)
  }
  // A key that has spent nothing keeps its window too: a clock set back must not find an earlier window empty.
  return spent == current ? value : changed(spent)
}

@inline function changed(spent: i64): u64 {
  current = spent
  return encoded()
}

@inline function changedBefore(spent: i64, value: u64): u64 {
  if (spent == previous) return value
  previous = spent
  return encoded()
}

@inline function deepest(): i64 {
  return encoding == WIDE ? deepestCount(capacity) : min<i64>(deepestCount(capacity), 0xffff)
}

/** When `amount` more would pass, for the key as last read: not before its window has begun. */
function earliestUs(amount: i64): i64 {
  const fromUs = max<i64>(atUs, number * windowUs)
  const endUs = (number + 1) * windowUs
  const here = within(previous, capacity - current - amount, fromUs, endUs)
  return here < endUs ? here : within(current, capacity - amount, endUs, endUs + windowUs)
}

/** The first time from `fromUs` on at which at most `room` of a previous count is left; `endUs` if not before it. */
function within(fading: i64, room: i64, fromUs: i64, endUs: i64): i64 {
  if (room < 0) return endUs
  if (fading <= room) return fromUs
  return max<i64>(fromUs, endUs - quotient(room, windowUs, fading))
}

export function untilFree(amount: i64): i64 {
  return earliestUs(amount) - atUs
}

export function untilNew(): i64 {
  if (current > 0) return (number + 2) * windowUs - atUs
  if (previous > 0) return (number + 1) * windowUs - atUs
  return max<i64>(number * windowUs - atUs, 0)
}
