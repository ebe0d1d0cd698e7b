import { capacity, tickUs, windowTicks } from "./policy"
import { ageOf, costUpTo, held } from "./ring"
import { answeredUs, askedFor, atUs, first, lastEver, lastTick, newestAge, over, used, wrapped } from "./sliding-log"

// How long a key of a log has to wait.

/** The first microsecond of a tick. */
@inline function startOf(tick: i64): i64 {
  return (tick - 1) * tickUs + 1
}

/** When `amount` more would pass, for the key as last read, in microseconds since the base. */
export function earliestUs(amount: i64): i64 {
  // The first time at which nothing would be appended before the newest.
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
  return (amount == askedFor ? answeredUs : earliestUs(amount)) - atUs
}

export function untilNew(): i64 {
  return max<i64>(startOf(used > 0 ? lastTick - newestAge + windowTicks : lastTick) - atUs, 0)
}
