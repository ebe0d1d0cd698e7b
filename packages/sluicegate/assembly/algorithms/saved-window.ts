import { RECORD_CALENDAR } from "../memory-map"
import { FIXED, SLIDING, WIDE } from "../policy/encodings"
import {
  baseUs, capacity, countBits, encoding, latestUs, policyRecord, standing, tickUs, windowBeginUs, windowEndUs, windowUs,
} from "../policy/policy"
import { field } from "../policy/policy-record"
import { locateNumber } from "./fixed-window"
import * as window from "./migrate-window"
import { isSealed, previousCount } from "./previous-count"
import { MOST_NUMBER, MOST_US, next, nextSigned, put, putSigned, unsound } from "./saved-numbers"
import { quotientUp } from "./wide-arithmetic"

// A saved window. Terms: length | limit | calendar, of fixed windows. Of the key, fixed: begin | end | count; sliding: number since the
// Unix epoch | previous count | current count.

const MOST_COUNT: i64 = (1 << 43) - 1
const MOST_WINDOW_US: i64 = (1 << 45) - 1
const MOST_PACKED: i64 = 0xffff

export function saveTerms(): void {
  put(windowUs)
  put(capacity)
  if (encoding == FIXED) put(field(policyRecord(), RECORD_CALENDAR))
}

export function saveWindow(entry: usize, value: u64): void {
  if (encoding == FIXED) saveFixed(value)
  else saveSliding(entry, value)
}

function saveFixed(value: u64): void {
  const count = <i64>(value & ((<u64>1 << <u64>countBits) - 1))
  const number = <i64>(value >> <u64>countBits)
  // A key that was never charged needs no window.
  if (value != 0) locateNumber(number)
  const beginUs = baseUs + (value == 0 ? 0 : windowBeginUs)
  putSigned(beginUs)
  putSigned(count == 0 ? beginUs : baseUs + windowEndUs)
  put(count)
}

function saveSliding(entry: usize, value: u64): void {
  window.read(value, policyRecord())
  if (encoding == WIDE) {
    if (isSealed(value)) window.setCounts(window.number + 1, window.current, 0)
    else window.setCounts(window.number, previousCount(entry, window.number), window.current)
  }
  putSigned(window.number + baseUs / windowUs)
  put(window.previous)
  put(window.current)
}

let fromWindowUs: i64 = 0
let fromCalendar: i64 = 0
let fromCapacity: i64 = 0
let beginUs: i64 = 0
let endUs: i64 = 0
let number: i64 = 0
let previous: i64 = 0
let current: i64 = 0

export function readTerms(): void {
  fromWindowUs = next(MOST_WINDOW_US)
  fromCapacity = next(MOST_NUMBER)
  if (encoding == FIXED) fromCalendar = next(MOST_NUMBER)
  else if (fromWindowUs == 0) unsound()
}

/** Whether the terms last read are those in force. */
export function areOwnTerms(): bool {
  return areOwnWindows() && fromCapacity == capacity
}

/** Whether windows begin and end as those in force. */
function areOwnWindows(): bool {
  return fromWindowUs == windowUs && (encoding != FIXED || fromCalendar == field(policyRecord(), RECORD_CALENDAR))
}

export function readWindow(): void {
  if (encoding == FIXED) {
    beginUs = nextSigned(MOST_US)
    endUs = nextSigned(MOST_US)
    current = next(MOST_NUMBER)
  } else {
    number = nextSigned(MOST_US)
    previous = next(MOST_COUNT)
    current = next(MOST_COUNT)
  }
}

/** Of the value last loaded: the tokens spent; and in the wide encoding the previous count, and its window since the Unix epoch. */
export let spent: i64 = 0
export let before: i64 = 0
export let windowBefore: i64 = 0

export function loadedWindow(nowUs: i64): u64 {
  return encoding == FIXED ? loadedFixed(standing(nowUs)) : loadedSliding(standing(nowUs))
}

function loadedFixed(nowUs: i64): u64 {
  const record = policyRecord()
  const isSame = areOwnWindows()
  spent = 0
  // As after an update: migrate-window.ts.
  const isEmptied = isSame && fromCapacity != capacity && current == 0 && beginUs > nowUs && beginUs == window.endOf(record, nowUs)
  if (isEmptied || (!isSame && beginUs > nowUs)) current = max<i64>(current, fromCapacity)
  if (!isSame && (current == 0 || endUs <= nowUs)) return 0
  const begin = isSame && !isEmptied ? min<i64>(beginUs, latestUs()) : window.beginOf(record, nowUs)
  if (begin < baseUs) return 0
  const most = areOwnTerms() ? (<i64>1 << countBits) - 1 : capacity
  const count = min<i64>(current, most)
  if (!isSame || endUs > nowUs) spent = count
  return (<u64>window.atMost((begin - baseUs) / tickUs, record) << <u64>countBits) | <u64>count
}

function loadedSliding(nowUs: i64): u64 {
  const isSame = areOwnWindows()
  const most = mostCounted(areOwnTerms())
  if (isSame) {
    const latest = latestUs() / windowUs
    window.setCounts(number, previous, current)
    if (fromCapacity != capacity) window.openEmpty(fromCapacity, windowUs, nowUs / windowUs, windowUs - (nowUs % windowUs))
    window.setCounts(min<i64>(window.number, latest) - baseUs / windowUs, min<i64>(window.previous, most), min<i64>(window.current, most))
  } else {
    const count = min<i64>(usedAt(nowUs), most)
    window.setCounts(count == 0 ? 0 : (nowUs - baseUs) / windowUs, 0, count)
  }
  const isOver = window.number < 0 || (window.number == 0 && window.current == 0)
  before = isOver ? 0 : window.previous
  windowBefore = window.number - 1 + baseUs / windowUs
  spent = isOver ? 0 : window.previous + window.current
  return isOver ? 0 : window.written(policyRecord())
}

/** The largest count that is kept: that of the policy, or under the same numbers all that a value holds. */
function mostCounted(isExact: bool): i64 {
  const width = encoding == SLIDING ? MOST_PACKED : (<i64>1 << countBits) - 1
  return isExact ? width : min<i64>(capacity, width)
}

/** What of the key last read counts at `nowUs`, under the policy in force, which saved it. */
export function countedAt(nowUs: i64): i64 {
  if (encoding != FIXED) return usedAt(standing(nowUs))
  loadedFixed(standing(nowUs))
  return spent
}

/** What counted at `nowUs` under the policy that saved it. */
function usedAt(nowUs: i64): i64 {
  const now = nowUs / fromWindowUs
  if (number > now) return max<i64>(current + previous, fromCapacity)
  if (number < now - 1) return 0
  const fading = number == now ? previous : current
  return (number == now ? current : 0) + quotientUp(fading, (now + 1) * fromWindowUs - nowUs, fromWindowUs)
}
