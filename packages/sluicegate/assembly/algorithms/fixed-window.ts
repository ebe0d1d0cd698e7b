import { calendarWindowEnd, calendarWindowStart } from "../host"
import { setWait } from "../results"
import { baseUs, capacity, countBits, policyRecord, setWindow, tickUs, windowBeginUs, windowEndUs, windowNumber, windowUs } from "../policy/policy"
import { CANCEL, PENALIZE, REFUND, RESERVE, RESET, TAKE, deepestCount } from "./verbs"

// Fixed window: number of the window since the time base | count. A calendar window has the tick in which it begins instead of a
// number. No tick is longer than a window, so no two windows begin in one, and the window around the end of a tick is the one that
// begins in it. JavaScript knows the ends of these windows, which are whole minutes.
//
// A window later than now is closed until it begins: the clock stepped back, or tokens are reserved ahead, and the count of the
// current window is no longer known.

// The key as last read or changed.
let number: i64 = 0
let count: i64 = 0
let beginUs: i64 = 0
let atUs: i64 = 0

/** Locates the window of `us`, unless it is the one located last. */
function locate(us: i64): void {
  if (us >= windowBeginUs && us < windowEndUs) return
  if (windowUs != 0) {
    const begin = us - (us % windowUs)
    setWindow(begin, begin + windowUs)
  } else {
    const begin = <i64>calendarWindowStart(policyRecord(), <f64>(us + baseUs)) - baseUs
    setWindow(begin, <i64>calendarWindowEnd(policyRecord(), <f64>(us + baseUs)) - baseUs)
  }
}

/** Locates the window of a number. */
export function locateNumber(ofWindow: i64): void {
  locate((ofWindow + 1) * tickUs - 1)
}

/** Makes the window located last that of the key. */
@inline function enter(): void {
  number = windowNumber
  beginUs = windowBeginUs
}

/** A key that has spent nothing but is closed until the window around `us`. */
export function emptyValue(us: i64): u64 {
  locate(us)
  return <u64>windowNumber << <u64>countBits
}

/** Tokens spent; the whole capacity while the window is closed. */
export function debtOf(value: u64, us: i64): i64 {
  read(value, us)
  return isClosed() ? capacity : count
}

function read(value: u64, us: i64): void {
  locate(us)
  atUs = us
  number = <i64>(value >> <u64>countBits)
  count = <i64>(value & ((<u64>1 << <u64>countBits) - 1))
  const ahead = number - windowNumber
  if (ahead > 0) locateNumber(number)
  else if (ahead < 0) count = 0
  enter()
}

@inline export function isClosed(): bool {
  return beginUs > atUs
}

/**
 * The value after the verb, unchanged if nothing changes. `bound`: what is held beside a take, the longest wait of a reservation, or the
 * time of a cancelled one.
 */
export function stepped(verb: i32, value: u64, us: i64, amount: i64, bound: i64): u64 {
  read(value, us)
  let spent = count
  if (verb == TAKE) {
    if (isClosed() || count + amount > capacity - bound) return value
    spent = count + amount
  } else if (verb == REFUND) spent = max<i64>(count - amount, 0)
  else if (verb == PENALIZE) spent = max<i64>(count, min<i64>(count + amount, deepestCount(capacity)))
  else if (verb == RESET) {
    locate(us)
    enter()
    count = 0
    return 0
  } else if (verb == RESERVE) {
    const earliestUs = us + untilFree(amount)
    if (amount > capacity || earliestUs - us > bound) return value
    setWait(earliestUs - us)
    locate(earliestUs)
    count = windowNumber == number ? count + amount : amount
    enter()
    return (<u64>number << <u64>countBits) | <u64>count
  } else if (verb == CANCEL) {
    locate(bound - baseUs)
    if (windowNumber == number) spent = max<i64>(count - amount, 0)
  }
  if (spent == count) return value
  count = spent
  // A key that has spent nothing keeps its window too: a clock set back must not find an earlier window empty.
  return (<u64>number << <u64>countBits) | <u64>spent
}

/** Microseconds until `amount` more would pass, for the key as last read. */
export function untilFree(amount: i64): i64 {
  const fits = count + amount <= capacity
  if (isClosed() && fits) return beginUs - atUs
  return fits ? 0 : endOfWindow() - atUs
}

/** Microseconds until the key owes nothing. */
export function untilNew(): i64 {
  if (count == 0) return max<i64>(beginUs - atUs, 0)
  return endOfWindow() - atUs
}

function endOfWindow(): i64 {
  locate(beginUs)
  return windowEndUs
}

/** For the key as last read or changed. */
@inline export function debtNow(): i64 {
  return isClosed() ? capacity : count
}
