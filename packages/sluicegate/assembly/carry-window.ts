import { companionsIn } from "./companions"
import * as compact from "./compact-counters"
import { COMPACT, CONCURRENCY, FIXED, LOG, SLIDING, WIDE } from "./forms"
import { calendarWindowStart } from "./host"
import {
  BLOCK_BASE_US, BLOCK_CALENDAR, BLOCK_CAPACITY, BLOCK_COUNT_BITS, BLOCK_ERA, BLOCK_FORM, BLOCK_KEEPS_DEBT,
  BLOCK_NUMBER_BITS, BLOCK_TICK_US, BLOCK_WINDOW_US,
} from "./memory-map"
import { field } from "./policy-block"
import { countBefore, isSealed, numberAndCount, sealedBit } from "./previous-count"
import { settled } from "./several"
import { quotientUp } from "./wide-arithmetic"

// Carrying over, for the forms that go by windows and times.

/** The value as the next policy writes it, at the time of the change. */
export function carriedWindow(value: u64, entry: usize, from: usize, to: usize, sinceUs: i64): u64 {
  const form = <i32>field(from, BLOCK_FORM)
  const laterUs = field(to, BLOCK_BASE_US) - field(from, BLOCK_BASE_US)
  // However long ago, it is not a key for which nothing ever happened.
  if (form == CONCURRENCY) return value == 0 ? 0 : max<u64>(shifted(value, 9, laterUs, to), 1)
  // Should its slots be others, sweep.ts has seen to it.
  if (form == LOG) return shifted(value, field(from, BLOCK_COUNT_BITS), laterUs / field(from, BLOCK_TICK_US), to)
  if (form == FIXED) return carriedFixed(value, from, to, sinceUs)
  const sameWindows = field(from, BLOCK_WINDOW_US) == field(to, BLOCK_WINDOW_US)
  const sameWords = form == <i32>field(to, BLOCK_FORM) && field(from, BLOCK_COUNT_BITS) == field(to, BLOCK_COUNT_BITS)
  return sameWindows && sameWords ? sameSliding(value, from, to) : otherSliding(value, entry, from, to, sinceUs)
}

/** Whatever stands above the lowest `bits`, less `by`. */
@inline function shifted(value: u64, bits: i64, by: i64, to: usize): u64 {
  const number = <i64>(value >> <u64>bits) - by
  return number <= 0 ? 0 : (<u64>atMost(number, to) << <u64>bits) | (value & ((<u64>1 << <u64>bits) - 1))
}

/** A number that a value of the block's policy can hold: with a clock that stepped back by years one may lie beyond. */
@inline function atMost(number: i64, block: usize): i64 {
  return min<i64>(number, (<i64>1 << field(block, BLOCK_NUMBER_BITS)) - 1)
}

/** The most that counts keep. */
@inline function mostIn(to: usize): i64 {
  return field(to, BLOCK_KEEPS_DEBT) != 0 ? i64.MAX_VALUE : field(to, BLOCK_CAPACITY)
}

function carriedFixed(value: u64, from: usize, to: usize, sinceUs: i64): u64 {
  const bits = <u64>field(from, BLOCK_COUNT_BITS)
  const count = <i64>(value & ((<u64>1 << bits) - 1))
  let beginUs = field(from, BLOCK_BASE_US) + <i64>(value >> bits) * field(from, BLOCK_TICK_US)
  const sameWindows = field(from, BLOCK_WINDOW_US) == field(to, BLOCK_WINDOW_US) && field(from, BLOCK_CALENDAR) == field(to, BLOCK_CALENDAR)
  if (!sameWindows) {
    if (count == 0 || beginUs < beginOf(from, sinceUs)) return 0
    beginUs = beginOf(to, sinceUs)
  }
  const number = (beginUs - field(to, BLOCK_BASE_US)) / field(to, BLOCK_TICK_US)
  return number < 0 ? 0 : (<u64>atMost(number, to) << <u64>field(to, BLOCK_COUNT_BITS)) | <u64>min<i64>(count, mostIn(to))
}

/** When the window around a time begins. */
function beginOf(block: usize, us: i64): i64 {
  const windowUs = field(block, BLOCK_WINDOW_US)
  if (windowUs == 0) return <i64>calendarWindowStart(block, <f64>us)
  const into = us % windowUs
  return us - (into < 0 ? into + windowUs : into)
}

let number: i64 = 0
let previous: i64 = 0
let current: i64 = 0

function read(value: u64, block: usize): void {
  const form = <i32>field(block, BLOCK_FORM)
  previous = 0
  if (form == SLIDING) {
    number = <i64>(value >> 32)
    previous = <i64>((value >> 16) & 0xffff)
    current = <i64>(value & 0xffff)
  } else if (form == COMPACT) {
    number = <i64>(value >> 36)
    previous = compact.coarse(value)
    current = compact.fine(value)
  } else {
    const bits = <u64>field(block, BLOCK_COUNT_BITS)
    number = <i64>(numberAndCount(value) >> bits)
    current = <i64>(numberAndCount(value) & ((<u64>1 << bits) - 1))
  }
}

function written(block: usize): u64 {
  const form = <i32>field(block, BLOCK_FORM)
  if (number < 0) return 0
  number = atMost(number, block)
  if (form == SLIDING) return (<u64>number << 32) | (<u64>previous << 16) | <u64>current
  if (form == COMPACT) return (<u64>number << 36) | compact.coarseOf(previous) | compact.fineOf(current)
  return (<u64>number << <u64>field(block, BLOCK_COUNT_BITS)) | <u64>current
}

function sameSliding(value: u64, from: usize, to: usize): u64 {
  read(value, from)
  number += (field(from, BLOCK_BASE_US) - field(to, BLOCK_BASE_US)) / field(to, BLOCK_WINDOW_US)
  previous = min<i64>(previous, mostIn(to))
  current = min<i64>(current, mostIn(to))
  const sealed = <i32>field(from, BLOCK_FORM) == WIDE && isSealed(value)
  return written(to) | (sealed && number >= 0 ? sealedBit : 0)
}

function otherSliding(value: u64, entry: usize, from: usize, to: usize, sinceUs: i64): u64 {
  read(value, from)
  const windowUs = field(from, BLOCK_WINDOW_US)
  const baseUs = field(from, BLOCK_BASE_US)
  const now = max<i64>(sinceUs - baseUs, 0) / windowUs
  if (<i32>field(from, BLOCK_FORM) == WIDE) {
    if (isSealed(value)) {
      number++
      previous = current
      current = 0
    } else if (entry != 0) previous = previousIn(from, entry)
  }
  let used = current + previous
  if (number <= now) {
    const fading = number == now ? previous : number == now - 1 ? current : 0
    used = (number == now ? current : 0) + quotientUp(fading, baseUs + (now + 1) * windowUs - sinceUs, windowUs)
  }
  number = (sinceUs - field(to, BLOCK_BASE_US)) / field(to, BLOCK_WINDOW_US)
  previous = 0
  current = min<i64>(used, field(to, BLOCK_CAPACITY))
  return current == 0 ? 0 : written(to)
}

function previousIn(block: usize, entry: usize): i64 {
  const absolute = number + field(block, BLOCK_BASE_US) / field(block, BLOCK_WINDOW_US)
  return countBefore(settled(companionsIn(block, entry)), absolute, <u64>field(block, BLOCK_COUNT_BITS), field(block, BLOCK_ERA))
}
