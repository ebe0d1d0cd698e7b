// Rates that come with each call, as in redis-cell: a key has an arrival time, and every call says how far that may lie ahead of now
// (`tolerance`) and what a token adds to it (`interval`). So one table holds all keys, whatever their rates.
//
// Two units are a nanosecond. Intervals and tolerances are whole nanoseconds, and the odd unit is a mark: the last call that passed
// left less than one token of its rate. A key without the mark would pass with one more token, now and at any later time, and may be
// evicted for a new key. A key with the mark may be one that is being denied, and stays until it owes nothing.

export const UNITS_PER_NS: i64 = 2
const MARK: i64 = 1

/** What a token of the current call adds, in units. */
let interval: i64 = 0

@inline export function setInterval(units: i64): void {
  interval = units
}

/** What a key owes, without the mark. */
@inline export function owedBy(debt: i64): i64 {
  return max<i64>(debt, 0) & ~MARK
}

/** Whether the key would have passed with one more token after its last call. */
@inline export function yieldsPlace(debt: i64): bool {
  return (debt & MARK) == 0
}

/** The debt after a take of `amount`, unchanged if it would exceed `tolerance`. */
@inline export function called(debt: i64, amount: i64, tolerance: i64): i64 {
  const next = owedBy(debt) + amount
  if (next > tolerance) return debt
  return next + interval > tolerance ? next | MARK : next
}
