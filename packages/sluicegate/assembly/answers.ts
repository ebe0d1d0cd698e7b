// What a call answers when it is not a debt.

/** Lost against another thread: once more, after a moment. */
export const RETRY: f64 = Infinity
/** One step of several is made: once more, at once. */
export const AGAIN: f64 = -Infinity

/** Why the answer is not a number. */
export const REFUSED: i32 = 1
export const BLOCKED: i32 = 2
export const CONTENDED: i32 = 3
/** Denied only because this thread's clock reads earlier than one by which the key was changed, or a key forgotten. */
export const LATE: i32 = 4
/** Answered after all, but a key that still owed something had to be forgotten for it. */
export const EVICTED: i32 = 5
/** Passed on a shared counter, because the key found no room. */
export const OVERFLOWED: i32 = 6

export let why: i32 = 0
/**
 * REFUSED and BLOCKED: microseconds to wait. LATE: the debt in units. EVICTED: the answer. OVERFLOWED: microseconds
 * until the counter owes nothing. */
export let detail: f64 = 0

@inline export function unanswered(reason: i32, about: f64): f64 {
  why = reason
  detail = about
  return NaN
}
