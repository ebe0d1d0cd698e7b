import { called } from "./call-rate"

// What a verb makes of a key's debt, as pure functions: no clock, memory or thread is involved. Debts are in units, 0 or less when
// the key owes nothing; `amount` is the weight of the tokens in question.

export const TAKE: i32 = 0
export const PEEK: i32 = 1
export const REFUND: i32 = 2
export const PENALIZE: i32 = 3
export const RESET: i32 = 4
/** On the entry of a ban, whose debt is the microseconds left; 0 lifts it. */
export const BAN: i32 = 5
/** Inserts the key and leaves it unchanged. */
export const INSERT: i32 = 6
/** A take that may lie in the future. */
export const RESERVE: i32 = 7
/** Gives back a reservation. */
export const CANCEL: i32 = 8
/** A take at the rate of the call; `amount` and `bound` are units of that rate, see call-rate.ts. */
export const CALL: i32 = 9

export const DEEPEST_DEBT_BURSTS: i64 = 11
/** A debt has to be exact in a double. */
const MOST_COUNT: i64 = (1 << 53) - 1

/** The most tokens that count in a window of this limit, penalties included. */
@inline export function deepestCount(capacity: i64): i64 {
  return min<i64>(DEEPEST_DEBT_BURSTS * capacity, MOST_COUNT)
}

/** Whether `amount` more would pass. */
@inline export function passes(debt: i64, amount: i64, capacity: i64): bool {
  return max<i64>(debt, 0) + amount <= capacity
}

/**
 * The debt after the verb. Three verbs use `bound`: what is held counts in a take; the deepest debt that a reservation may leave, and the deepest
 * at which a cancel gives anything back.
 */
@inline export function step(
  verb: i32, debt: i64, amount: i64, capacity: i64, unitsPerToken: i64, unitsPerUs: i64, bound: i64,
): i64 {
  const owed = max<i64>(debt, 0)
  if (verb == TAKE) return owed + amount <= capacity - bound ? owed + amount : owed
  if (verb == CALL) return called(owed, amount, bound)
  if (verb == REFUND) return max<i64>(owed - amount, 0)
  if (verb == PENALIZE) return max<i64>(owed, min<i64>(owed + amount, DEEPEST_DEBT_BURSTS * capacity))
  if (verb == BAN) return amount == 0 ? 0 : max<i64>(owed, amount)
  if (verb == RESERVE) return owed + amount <= bound ? reserved(owed, amount, capacity, unitsPerUs) : owed
  if (verb == CANCEL) return cancelled(owed, amount, capacity, unitsPerToken, unitsPerUs, bound)
  return verb == RESET ? 0 : owed
}

/**
 * A take at the whole microsecond that it is reserved for: by then, a fraction after it would have passed, the key may owe
 * nothing.
 */
@inline function reserved(owed: i64, amount: i64, capacity: i64, unitsPerUs: i64): i64 {
  const waitUs = (max<i64>(owed + amount - capacity, 0) + unitsPerUs - 1) / unitsPerUs
  return max<i64>(owed, waitUs * unitsPerUs) + amount
}

/**
 * Early, when the bound is above the capacity, a reservation is cancelled only if no later reservation remains. A cancelled
 * reservation leaves behind what moved it to a whole microsecond, less than the refill of one. That part belongs to no request and
 * is removed too. No caller gains by it: a later reservation or take owes at least a token more.
 */
@inline function cancelled(owed: i64, amount: i64, capacity: i64, unitsPerToken: i64, unitsPerUs: i64, bound: i64): i64 {
  const rest = bound > capacity ? min<i64>(unitsPerToken, unitsPerUs) - 1 : 0
  return owed <= bound + rest ? max<i64>(min<i64>(owed, bound) - amount, 0) : owed
}
