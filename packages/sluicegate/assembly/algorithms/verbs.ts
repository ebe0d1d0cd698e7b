// The steps, pure: what a verb makes of a key's debt. No clock, no memory, no thread is known here.
// Debt is in units, 0 or less when the key is as good as new; `amount` is what the tokens in question weigh.

export const TAKE: i32 = 0
export const PEEK: i32 = 1
export const REFUND: i32 = 2
export const PENALIZE: i32 = 3
export const RESET: i32 = 4
/** On a block's own entry, whose debt is the microseconds left; 0 lifts it. */
export const BAN: i32 = 5
/** Moves the key in, and leaves it as it is. */
export const INSERT: i32 = 6
/** A take that may lie in the future. */
export const RESERVE: i32 = 7
/** Gives back what a reservation holds. */
export const CANCEL: i32 = 8

export const DEEPEST_DEBT_BURSTS: i64 = 11

/** Whether `amount` more would pass. */
@inline export function passes(debt: i64, amount: i64, capacity: i64): bool {
  return max<i64>(debt, 0) + amount <= capacity
}

/**
 * The debt after the verb. `bound` is for two verbs alone: the deepest debt that a reservation may leave, and the deepest of which
 * a cancel gives anything back.
 */
@inline export function step(
  verb: i32, debt: i64, amount: i64, capacity: i64, unitsPerToken: i64, unitsPerUs: i64, bound: i64,
): i64 {
  const owed = max<i64>(debt, 0)
  if (verb == TAKE) return owed + amount <= capacity ? owed + amount : owed
  if (verb == REFUND) return max<i64>(owed - amount, 0)
  if (verb == PENALIZE) return max<i64>(owed, min<i64>(owed + amount, DEEPEST_DEBT_BURSTS * capacity))
  if (verb == BAN) return amount == 0 ? 0 : max<i64>(owed, amount)
  if (verb == RESERVE) return owed + amount <= bound ? reserved(owed, amount, capacity, unitsPerUs) : owed
  if (verb == CANCEL) return cancelled(owed, amount, capacity, unitsPerToken, unitsPerUs, bound)
  return verb == RESET ? 0 : owed
}

/** As a take at the whole microsecond that it is booked for: by then, a fraction after it would have passed, the key may owe nothing. */
@inline function reserved(owed: i64, amount: i64, capacity: i64, unitsPerUs: i64): i64 {
  const waitUs = (max<i64>(owed + amount - capacity, 0) + unitsPerUs - 1) / unitsPerUs
  return max<i64>(owed, waitUs * unitsPerUs) + amount
}

/**
 * Before its time, when the bound is above the capacity, a reservation is cancelled only if nobody who booked after it still stands. One
 * that was cancelled leaves behind what put it off to a whole microsecond, less than flows back in one: that is nobody's, and comes off as well.
 * Nobody gains by it: whoever stands after it, or took, owes at least a token more.
 */
@inline function cancelled(owed: i64, amount: i64, capacity: i64, unitsPerToken: i64, unitsPerUs: i64, bound: i64): i64 {
  const rest = bound > capacity ? min<i64>(unitsPerToken, unitsPerUs) - 1 : 0
  return owed <= bound + rest ? max<i64>(min<i64>(owed, bound) - amount, 0) : owed
}
