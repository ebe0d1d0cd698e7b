import { RECORD_BASE_US, RECORD_CAPACITY, RECORD_COUNT_BITS, RECORD_SINCE_US, RECORD_SLOTS, RECORD_TICK_US, RECORD_WINDOW_US, STATE } from "../memory-map"
import { load } from "../atomics/atomics"
import { resolved, swapBoth } from "../atomics/kcas"
import { valueOf, withValue } from "../atomics/words"
import { extensionIn, extensionMoved } from "../policy/extension"
import { baseUs, countBits, epoch, tickUs } from "../policy/policy"
import { field } from "../policy/policy-record"
import * as ring from "./log-ring"
import { expiredBy, firstNewNumbers, recordOf } from "./migrate-value"

// Migrates a log. When a policy needs more slots, or other ones, its extensions have another place in the memory. Each key's
// extension is copied there before its state word is written for the new policy. The state word of the old policy stands until
// then and never returns, so that all threads copy the same. A slot is written only where it still is what it was before that word
// was read once more. Whatever an earlier policy left at that place has no meaning: permits are overwritten, and so is a log's
// header.

/**
 * Writes a log's state word for the policy in force, and with it the header. It leaves out what has expired, which must not come
 * back under a longer window, and copies the rest if it has another place now. False: try again.
 */
export function migrateLog(entry: usize, state: u64, from: usize, lag: u64): bool {
  const source = extensionIn(from, entry)
  const fromBits = <u64>field(from, RECORD_COUNT_BITS)
  const fromTickUs = field(from, RECORD_TICK_US)
  const lastTick = field(from, RECORD_BASE_US) / fromTickUs + <i64>(valueOf(state) >> fromBits)
  const total = valueOf(state) & ((<u64>1 << fromBits) - 1)
  const overByUs = expiredBy(lag, lastTick * fromTickUs)
  ring.readRingAt(source, field(from, RECORD_SLOTS))
  const changes = firstNewNumbers(lag)
  if (changes > 0) {
    const next = recordOf(changes - 1)
    const sinceTick = (field(next, RECORD_SINCE_US) + fromTickUs - 1) / fromTickUs
    if (isWider(from, next) && isEmptyAhead(lastTick, total, sinceTick, fromBits)) {
      return openFull(entry, state, source, from, sinceTick * fromTickUs, expiredBy(changes - 1, sinceTick * fromTickUs))
    }
  }

  let first = ring.held
  const isOver = lastTick * fromTickUs <= overByUs
  while (!isOver && first > 0 && (lastTick - ring.ageIn(first - 1, lastTick, fromBits)) * fromTickUs > overByUs) first--
  // The oldest of a ring that is not whole has expired.
  if (!ring.whole && first == 0 && ring.held > 0) first = 1
  const moves = extensionMoved(from)
  if (isOver) return rewritten(entry, state, source, moves, 0, 0, ring.headerWith(0, 0, 0, true, true))
  if (moves) return copyLog(entry, state, source, first, lastTick, total, fromBits, fromTickUs)
  // Expired requests are left out, except the last one, which holds the cost so far.
  const left = first - 1
  const whole = ring.whole && first == 0
  const next = ring.headerWith(ring.place, left > 0 ? ring.held - left : ring.held, ring.costSoFar, whole, true)
  return rewritten(entry, state, source, false, lastTick - baseUs / tickUs, total, next)
}

/** Whether more may pass now, or what has passed counts for longer. Under a smaller limit a closed log may stay closed. */
@inline function isWider(from: usize, to: usize): bool {
  return field(to, RECORD_CAPACITY) > field(from, RECORD_CAPACITY) || field(to, RECORD_WINDOW_US) != field(from, RECORD_WINDOW_US)
}

/** Whether a log, its ring as read, waits for a time later than `sinceTick` in which nothing is booked any more. */
function isEmptyAhead(lastTick: i64, total: u64, sinceTick: i64, fromBits: u64): bool {
  if (lastTick <= sinceTick || total != <u64>ring.costSoFar) return false
  return ring.held == 0 || lastTick - ring.ageIn(ring.held - 1, lastTick, fromBits) <= sinceTick
}

/** What had expired by that time is gone from the ring: it opens as one that is full at the time of the change. */
function openFull(entry: usize, state: u64, source: usize, from: usize, sinceUs: i64, overByUs: i64): bool {
  const isOver = sinceUs <= overByUs
  const spent = isOver ? 0 : min<u64>(<u64>field(from, RECORD_CAPACITY), (<u64>1 << <u64>countBits) - 1)
  const tick = isOver ? 0 : ticksIn(sinceUs) - baseUs / tickUs
  return rewritten(entry, state, source, extensionMoved(from), tick, spent, ring.headerWith(0, 0, 0, true, true))
}

/**
 * Copies the requests from number `oldest` on, with costs counted from there. If the costs exceed the width of a smaller limit,
 * the oldest requests are left out: by the time they would matter again, they have expired.
 */
function copyLog(
  entry: usize, state: u64, source: usize, oldest: i64, lastTick: i64, total: u64, fromBits: u64, fromTickUs: i64,
): bool {
  const costMask = (<u64>1 << fromBits) - 1
  const mostCost = (<u64>1 << <u64>countBits) - 1
  let first = oldest
  let over = <u64>ring.costUpToIn(first - 1, fromBits)
  while (first < ring.held && ((total - over) & costMask) > mostCost) over = <u64>ring.costUpToIn(first++, fromBits)
  const spent = min<u64>((total - over) & costMask, mostCost)
  const target = ring.headerOf(entry) + 8
  let count: i64 = 0
  let cost: i64 = 0
  for (let i = first; i < ring.held; i++) {
    cost = <i64>((<u64>ring.costUpToIn(i, fromBits) - over) & costMask)
    const tick = ticksIn((lastTick - ring.ageIn(i, lastTick, fromBits)) * fromTickUs)
    if (!ring.fill(entry, state, target + <usize>(count << 3), ring.slotOf(tick, cost))) return false
    count++
  }
  const next = ring.headerWith(max<i64>(count - 1, 0), count, cost, true, true)
  return rewritten(entry, state, source, true, ticksIn(lastTick * fromTickUs) - baseUs / tickUs, spent, next)
}

/** Swaps state and header, if the header that was read still stands. */
function rewritten(entry: usize, state: u64, source: usize, moves: bool, tick: i64, total: u64, next: u64): bool {
  const target = ring.headerOf(entry)
  const seen = moves ? resolved(target) : ring.header
  if (moves && (load(entry + STATE) != state || resolved(source) != ring.header)) return false
  const most = (<i64>1 << (56 - countBits)) - 1
  const value = (<u64>min<i64>(max<i64>(tick, 0), most) << <u64>countBits) | total
  return swapBoth(entry + STATE, state, withValue(state, epoch, value), target, seen, next)
}

/** A time in ticks of the policy in force, rounded up. */
@inline function ticksIn(us: i64): i64 {
  return (us + tickUs - 1) / tickUs
}
