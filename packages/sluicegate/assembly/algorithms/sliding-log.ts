import { STATE } from "../memory-map"
import { AGAIN, RETRY, setWait } from "../results"
import { load, swap } from "../atomics/atomics"
import { resolved } from "../atomics/kcas"
import { baseUs, capacity, countBits, slots, tickUs, windowTicks } from "../policy/policy"
import {
  ageOf, costSoFar, costUpTo, fill, header, headerOf, headerWith, held, place, placeAfter, placeBefore, readRing, slotAddress,
  slotOf, whole,
} from "./log-ring"
import { CANCEL, DEEPEST_DEBT_BURSTS, PEEK, PENALIZE, REFUND, RESERVE, RESET, TAKE } from "./verbs"

// Sliding log: time of the newest request, in ticks since the time base | cost of all requests so far, modulo its width. The
// earlier requests are in a ring, see log-ring.ts. Exact: a window in any position holds at most the limit.
//
// A request is appended in two steps, of which only the second counts: the newest one is copied into the ring (`copyNewest`), then
// the state word is swapped. While the clock has stepped back, or tokens are reserved ahead, the log is closed.

// All times are whole ticks, rounded up; a window has enough ticks that nothing expires too early. Nearly all policies have ticks
// of a microsecond, and then nothing is rounded.

// The key as last read or changed, in ticks since the base.
export let lastTick: i64 = 0
let total: i64 = 0
export let nowTick: i64 = 0
export let atUs: i64 = 0
export let used: i64 = 0
/** The first request in the ring that still counts, and the cost of those before it. */
export let first: i64 = 0
export let over: i64 = 0
/** Cost of the newest request that the ring does not hold; 0 if it holds all. */
export let loose: i64 = 0
/** Ticks from the newest request that costs anything to the newest time. */
export let newestAge: i64 = 0

/** The amount that the last take or peek asked for, and when it would pass: computed while nothing had changed. */
export let quotedAmount: i64 = 0
export let quotedUs: i64 = 0

/** What must be done besides the swap of the state word: */
export const NOTHING: i32 = 0
/** copy the newest request into the ring first; */
export const COPY: i32 = 1
/** change the ring's header to `nextHeader` in the same swap. */
export const HEADER: i32 = 2
export let alsoNeeded: i32 = 0
export let nextHeader: u64 = 0

/** A slot is dropped before it is reused, so what was read is consistent if the header is unchanged. */
export function isUnchanged(entry: usize): bool {
  return resolved(headerOf(entry)) == header
}

export function clearNeeded(): void {
  alsoNeeded = NOTHING
}

/** The newest request before a step that has to copy it. */
export let newestTick: i64 = 0
export let newestTotal: i64 = 0

@inline export function wrapped(cost: i64): i64 {
  return <i64>(<u64>cost & ((<u64>1 << <u64>countBits) - 1))
}

/** The newest request's time as slots hold it. */
@inline export function lastEver(): i64 {
  return lastTick + baseUs / tickUs
}

@inline function tickOf(us: i64): i64 {
  return tickUs == 1 ? us : (us + tickUs - 1) / tickUs
}

@inline export function isClosed(): bool {
  return nowTick < lastTick
}

@inline function value(): u64 {
  return (<u64>lastTick << <u64>countBits) | <u64>total
}

/** The value of a key for which nothing counts and which is closed until `us`. */
export function emptyValue(us: i64): u64 {
  return <u64>tickOf(us) << <u64>countBits
}

function read(entry: usize, word: u64, us: i64): void {
  atUs = us
  nowTick = tickOf(us)
  lastTick = <i64>(word >> <u64>countBits)
  total = wrapped(<i64>word)
  readRing(entry)
  loose = wrapped(total - costSoFar)
  newestAge = loose > 0 || held == 0 ? 0 : ageOf(held - 1, lastEver())
  const reach = windowTicks - max<i64>(nowTick - lastTick, 0)
  first = held
  over = total
  if (reach > 0) {
    first = firstYounger(reach, lastEver())
    over = costUpTo(first - 1)
  }
  used = wrapped(total - over)
}

/**
 * The first request in the ring, the oldest is 0, that lies less than `reach` ticks before `newest`. It is mostly one of the
 * first.
 */
export function firstYounger(reach: i64, newest: i64): i64 {
  // The oldest of a ring that is not whole has expired.
  let low: i64 = whole ? 0 : 1
  let high = low
  for (let step: i64 = 1; high < held && ageOf(high, newest) >= reach; step <<= 1) {
    low = high + 1
    high += step
  }
  high = min<i64>(high, held)
  while (low < high) {
    const middle = (low + high) >> 1
    if (ageOf(middle, newest) < reach) high = middle
    else low = middle + 1
  }
  return min<i64>(low, held)
}

/** For the key as last read or changed. */
export function debtNow(): i64 {
  return isClosed() ? capacity : used
}
export function debtOf(entry: usize, word: u64, us: i64): i64 {
  read(entry, word, us)
  return debtNow()
}

/**
 * The value after the verb, unchanged if nothing changes. `bound`: what is held beside a take, the longest wait of a reservation, or the
 * time of a cancelled one.
 */
export function stepped(verb: i32, entry: usize, word: u64, us: i64, amount: i64, bound: i64): u64 {
  read(entry, word, us)
  quotedAmount = -1
  if (verb == TAKE && !isClosed() && used + amount <= capacity - bound) return appended(nowTick, amount)
  if (verb == TAKE || verb == PEEK) {
    quotedAmount = amount
    quotedUs = earliestUs(amount)
    return word
  }
  if (verb == RESERVE) {
    const earliest = amount > capacity ? i64.MAX_VALUE : earliestUs(amount)
    if (earliest - us > bound) return word
    setWait(earliest - us)
    return appended(tickOf(earliest), amount)
  }
  if (verb == PENALIZE) {
    const allowed = DEEPEST_DEBT_BURSTS * capacity - used
    return allowed > 0 ? penalized(min<i64>(amount, allowed)) : word
  }
  if (verb == RESET) {
    turnHeader(0, 0, 0, true)
    used = total = newestAge = lastTick = 0
    return 0
  }
  if (verb == REFUND && used > 0) return dropped(min<i64>(amount, used))
  if (verb == CANCEL && used > 0 && lastTick == tickOf(bound - baseUs)) return dropped(min<i64>(amount, costOfLastTick()))
  return word
}

function appended(tick: i64, cost: i64): u64 {
  if (used == 0 && (held > 0 || loose > 0)) {
    // Everything has expired: the ring begins again, before its times become ambiguous.
    turnHeader(0, 0, 0, true)
    total = cost
    used = cost
  } else {
    if (loose > 0) copyFirst()
    total = wrapped(total + cost)
    used += cost
  }
  newestAge = 0
  lastTick = max<i64>(tick, lastTick)
  return value()
}

function copyFirst(): void {
  alsoNeeded = COPY
  newestTick = lastTick
  newestTotal = total
}

function turnHeader(place: i64, held: i64, costSoFar: i64, whole: bool): void {
  alsoNeeded = HEADER
  nextHeader = headerWith(place, held, costSoFar, whole, true)
}

function penalized(cost: i64): u64 {
  if (used == 0) return appended(nowTick, cost)
  const later = nowTick > lastTick
  const live = held - first + (loose > 0 ? 1 : 0)
  if (later && live < capacity) return appended(nowTick, cost)
  // A newest request that the ring holds comes out again. In a closed log the newest may be only a time.
  const comesOut = loose == 0 && ageOf(held - 1, lastEver()) == 0
  if (comesOut) turnHeader(placeBefore(place, 1), held - 1, costUpTo(held - 2), whole)
  else turnHeader(place, held, costSoFar, whole)
  used += cost
  total = wrapped(total + cost)
  newestAge = 0
  if (later) lastTick = nowTick
  return value()
}

/**
 * Removes the newest `cost` tokens of those that count. The newest request's time stays, and what is left of a request counts from
 * there: if the clock were set back to before it, the log might hold too little of what counts then.
 */
function dropped(cost: i64): u64 {
  used -= cost
  let left = cost - loose
  if (left < 0) {
    total = wrapped(total - cost)
    turnHeader(place, held, costSoFar, whole)
    return value()
  }
  let newest = held - 1
  while (left > 0 && newest >= first && left >= costOf(newest)) left -= costOf(newest--)
  const upTo = costUpTo(newest)
  const partly = left > 0
  const kept = partly ? newest : newest + 1
  turnHeader(placeBefore(place, held - kept), kept, costUpTo(kept - 1), whole)
  total = partly ? wrapped(upTo - left) : upTo
  newestAge = partly || newest < first ? 0 : ageOf(newest, lastEver())
  return value()
}

@inline function costOf(i: i64): i64 {
  return wrapped(costUpTo(i) - costUpTo(i - 1))
}

/** Cost of all requests at the very time of the newest. */
function costOfLastTick(): i64 {
  let earlier = held
  while (earlier > first && ageOf(earlier - 1, lastEver()) == 0) earlier--
  return wrapped(total - costUpTo(earlier - 1))
}

// Waiting times of a key.

/** The first microsecond of a tick. */
@inline function startOf(tick: i64): i64 {
  return (tick - 1) * tickUs + 1
}

/** When `amount` more would pass, for the key as last read, in microseconds since the base. */
function earliestUs(amount: i64): i64 {
  // The first time at which no request would be appended before the newest.
  const openUs = max<i64>(atUs, startOf(lastTick))
  const excess = used + amount - capacity
  if (excess <= 0) return openUs
  let low = first
  let high = held
  while (low < high) {
    const middle = (low + high) >> 1
    if (wrapped(costUpTo(middle) - over) >= excess) high = middle
    else low = middle + 1
  }
  const age = low < held ? ageOf(low, lastEver()) : 0
  return max<i64>(openUs, startOf(lastTick - age + windowTicks))
}

export function untilFree(amount: i64): i64 {
  return (amount == quotedAmount ? quotedUs : earliestUs(amount)) - atUs
}

export function untilNew(): i64 {
  return max<i64>(startOf(used > 0 ? lastTick - newestAge + windowTicks : lastTick) - atUs, 0)
}

/**
 * Copies the newest request into the ring. Returns 0 when that is done, RETRY if something has changed, AGAIN if it only made
 * room.
 */
export function copyNewest(entry: usize, state: u64): f64 {
  // The header was read after the state. If the state still stands they belong together, and the swap of the header fails once it
  // does not.
  if (load(entry + STATE) != state) return RETRY
  const tick = newestTick + baseUs / tickUs
  const live = firstYounger(windowTicks, tick)
  // The last expired one is kept for its cost so far.
  const gone = max<i64>(live - 1, 0)
  const stillWhole = whole && live == 0
  if (held >= slots) {
    return swap(headerOf(entry), header, headerWith(place, held - gone, costSoFar, stillWhole, false)) ? AGAIN : RETRY
  }
  const at = placeAfter(place)
  if (!fill(entry, state, slotAddress(at), slotOf(tick, newestTotal))) return RETRY
  return swap(headerOf(entry), header, headerWith(at, held - gone + 1, newestTotal, stillWhole, false)) ? 0 : RETRY
}
