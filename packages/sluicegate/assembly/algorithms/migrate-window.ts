import { calendarWindowEnd, calendarWindowStart } from "../host"
import {
  RECORD_BASE_US, RECORD_CALENDAR, RECORD_CAPACITY, RECORD_COUNT_BITS, RECORD_ENCODING, RECORD_ERA, RECORD_KEEPS_DEBT,
  RECORD_NUMBER_BITS, RECORD_TICK_US, RECORD_WINDOW_US,
} from "../memory-map"
import { resolved } from "../atomics/kcas"
import { CONCURRENCY, FIXED, LOG, SLIDING, WIDE } from "../policy/encodings"
import { extensionIn } from "../policy/extension"
import { field } from "../policy/policy-record"
import { countBefore, isSealed, numberAndCount, sealedBit } from "./previous-count"
import { quotientUp } from "./wide-arithmetic"

// Migration of the encodings that hold windows and times.

const MINUTE_US: i64 = 60_000_000

/** The value in the encoding of the next policy, at the time of the change. */
export function migratedWindow(value: u64, entry: usize, from: usize, to: usize, sinceUs: i64): u64 {
  const encoding = <i32>field(from, RECORD_ENCODING)
  const laterUs = field(to, RECORD_BASE_US) - field(from, RECORD_BASE_US)
  // At least 1, however long ago: 0 would say that the key was never used.
  if (encoding == CONCURRENCY) return value == 0 ? 0 : max<u64>(shifted(value, 9, laterUs, to), 1)
  // If the slots differ, table/migrate.ts has handled it.
  if (encoding == LOG) return shifted(value, field(from, RECORD_COUNT_BITS), laterUs / field(from, RECORD_TICK_US), to)
  if (encoding == FIXED) return migratedFixed(value, from, to, sinceUs)
  const sameWindows = field(from, RECORD_WINDOW_US) == field(to, RECORD_WINDOW_US)
  const sameWords = encoding == <i32>field(to, RECORD_ENCODING) && field(from, RECORD_COUNT_BITS) == field(to, RECORD_COUNT_BITS)
  return sameWindows && sameWords ? sameSliding(value, from, to, sinceUs) : otherSliding(value, entry, from, to, sinceUs)
}

/** The bits above the lowest `bits`, less `by`. */
@inline function shifted(value: u64, bits: i64, by: i64, to: usize): u64 {
  const number = <i64>(value >> <u64>bits) - by
  return number <= 0 ? 0 : (<u64>atMost(number, to) << <u64>bits) | (value & ((<u64>1 << <u64>bits) - 1))
}

/** The number, at most what a value of the policy can hold: with a clock that stepped back by years it may lie beyond. */
@inline export function atMost(number: i64, record: usize): i64 {
  return min<i64>(number, (<i64>1 << field(record, RECORD_NUMBER_BITS)) - 1)
}

/** The largest count that is kept. */
@inline function mostIn(to: usize): i64 {
  return field(to, RECORD_KEEPS_DEBT) != 0 ? i64.MAX_VALUE : field(to, RECORD_CAPACITY)
}

function migratedFixed(value: u64, from: usize, to: usize, sinceUs: i64): u64 {
  const bits = <u64>field(from, RECORD_COUNT_BITS)
  const tickUs = field(from, RECORD_TICK_US)
  const numberFrom = <i64>(value >> bits)
  let count = <i64>(value & ((<u64>1 << bits) - 1))
  let beginUs = field(from, RECORD_BASE_US) + numberFrom * tickUs
  const sameWindows = field(from, RECORD_WINDOW_US) == field(to, RECORD_WINDOW_US) && field(from, RECORD_CALENDAR) == field(to, RECORD_CALENDAR)
  if (!sameWindows) {
    beginUs = beginOfNumber(from, numberFrom)
    // What a closed key has spent in this window is not known: all of it.
    if (beginUs > sinceUs) count = max<i64>(count, field(from, RECORD_CAPACITY))
    if (count == 0 || beginUs < beginOf(from, sinceUs)) return 0
    beginUs = beginOf(to, sinceUs)
  } else if (count == 0 && isOtherCapacity(from, to) && beginOfNumber(from, numberFrom) == endOf(from, sinceUs) && beginOf(from, sinceUs) >= field(to, RECORD_BASE_US)) {
    beginUs = beginOf(from, sinceUs)
    count = field(from, RECORD_CAPACITY)
  } else if (tickUs != field(to, RECORD_TICK_US)) beginUs = beginOfNumber(from, numberFrom)
  const number = (beginUs - field(to, RECORD_BASE_US)) / field(to, RECORD_TICK_US)
  return number < 0 ? 0 : (<u64>atMost(number, to) << <u64>field(to, RECORD_COUNT_BITS)) | <u64>min<i64>(count, mostIn(to))
}

/**
 * A key that waits for a window in which nothing is booked any more is as one that is full in the window before: under another limit it has
 * the room of one.
 */
@inline function isOtherCapacity(from: usize, to: usize): bool {
  return field(from, RECORD_CAPACITY) != field(to, RECORD_CAPACITY)
}

/** End of the window around a time. */
export function endOf(record: usize, us: i64): i64 {
  const windowUs = field(record, RECORD_WINDOW_US)
  return windowUs == 0 ? <i64>calendarWindowEnd(record, <f64>us) : beginOf(record, us) + windowUs
}

/**
 * Begin of the window of a number, see fixed-window.ts. The ticks of most calendars are minutes, in which windows begin; to find
 * out costs a call of the host.
 */
function beginOfNumber(record: usize, number: i64): i64 {
  const tickUs = field(record, RECORD_TICK_US)
  const tickBeginUs = field(record, RECORD_BASE_US) + number * tickUs
  const isBegin = field(record, RECORD_WINDOW_US) != 0 || tickUs == MINUTE_US || number == 0
  return isBegin ? tickBeginUs : <i64>calendarWindowStart(record, <f64>(tickBeginUs + tickUs - 1))
}

/** Begin of the window around a time. */
export function beginOf(record: usize, us: i64): i64 {
  const windowUs = field(record, RECORD_WINDOW_US)
  if (windowUs == 0) return <i64>calendarWindowStart(record, <f64>us)
  const into = us % windowUs
  return us - (into < 0 ? into + windowUs : into)
}

// A sliding window as last read; what `written` makes a value of.
export let number: i64 = 0
export let previous: i64 = 0
export let current: i64 = 0

export function setCounts(ofWindow: i64, before: i64, now: i64): void {
  number = ofWindow
  previous = before
  current = now
}

/** All but the previous count of the wide encoding. */
export function read(value: u64, record: usize): void {
  const encoding = <i32>field(record, RECORD_ENCODING)
  previous = 0
  if (encoding == SLIDING) {
    number = <i64>(value >> 32)
    previous = <i64>((value >> 16) & 0xffff)
    current = <i64>(value & 0xffff)
  } else {
    const bits = <u64>field(record, RECORD_COUNT_BITS)
    number = <i64>(numberAndCount(value) >> bits)
    current = <i64>(numberAndCount(value) & ((<u64>1 << bits) - 1))
  }
}

export function written(record: usize): u64 {
  const encoding = <i32>field(record, RECORD_ENCODING)
  if (number < 0) return 0
  number = atMost(number, record)
  if (encoding == SLIDING) return (<u64>number << 32) | (<u64>previous << 16) | <u64>current
  return (<u64>number << <u64>field(record, RECORD_COUNT_BITS)) | <u64>current
}

function sameSliding(value: u64, from: usize, to: usize, sinceUs: i64): u64 {
  read(value, from)
  const now = max<i64>(sinceUs - field(from, RECORD_BASE_US), 0) / field(from, RECORD_WINDOW_US)
  // The wide encoding has the previous count elsewhere.
  if (isOtherCapacity(from, to) && <i32>field(from, RECORD_ENCODING) != WIDE) {
    const windowUs = field(from, RECORD_WINDOW_US)
    openEmpty(field(from, RECORD_CAPACITY), windowUs, now, (now + 1) * windowUs - max<i64>(sinceUs - field(from, RECORD_BASE_US), 0))
  }
  number += (field(from, RECORD_BASE_US) - field(to, RECORD_BASE_US)) / field(to, RECORD_WINDOW_US)
  previous = min<i64>(previous, mostIn(to))
  current = min<i64>(current, mostIn(to))
  const sealed = <i32>field(from, RECORD_ENCODING) == WIDE && isSealed(value)
  return written(to) | (sealed && number >= 0 ? sealedBit : 0)
}

/**
 * A key that waits for a window in which nothing is booked any more is full at the time of the change: what it has spent in the window before
 * is known, and no more of the one before that counts than passed beside it. `now` is the window of the change, which lasts for `leftUs` more.
 */
export function openEmpty(capacity: i64, windowUs: i64, now: i64, leftUs: i64): void {
  if (current != 0) return
  if (number == now + 1) {
    current = previous
    previous = min<i64>(quotientUp(max<i64>(capacity - current, 0), windowUs, leftUs), capacity)
    number = now
  } else if (number == now + 2 && previous == 0) {
    current = capacity
    number = now
  }
}

function otherSliding(value: u64, entry: usize, from: usize, to: usize, sinceUs: i64): u64 {
  read(value, from)
  const windowUs = field(from, RECORD_WINDOW_US)
  const baseUs = field(from, RECORD_BASE_US)
  const now = max<i64>(sinceUs - baseUs, 0) / windowUs
  if (<i32>field(from, RECORD_ENCODING) == WIDE) {
    if (isSealed(value)) {
      number++
      previous = current
      current = 0
    } else if (entry != 0) previous = previousIn(from, entry)
  }
  let used = current + previous
  if (number > now) used = max<i64>(used, field(from, RECORD_CAPACITY))
  else {
    const fading = number == now ? previous : number == now - 1 ? current : 0
    used = (number == now ? current : 0) + quotientUp(fading, baseUs + (now + 1) * windowUs - sinceUs, windowUs)
  }
  number = (sinceUs - field(to, RECORD_BASE_US)) / field(to, RECORD_WINDOW_US)
  previous = 0
  current = min<i64>(used, field(to, RECORD_CAPACITY))
  return current == 0 ? 0 : written(to)
}

function previousIn(record: usize, entry: usize): i64 {
  const absolute = number + field(record, RECORD_BASE_US) / field(record, RECORD_WINDOW_US)
  return countBefore(resolved(extensionIn(record, entry)), absolute, <u64>field(record, RECORD_COUNT_BITS), field(record, RECORD_ERA))
}
