// Results of the core's functions.
//
// A WebAssembly function returns one value, and AssemblyScript has no tuples without an allocation. So a function that has more to
// say returns the most important number and leaves the rest in one of the globals below, where its caller reads it before it calls
// anything else. An instance runs on one thread and no call is re-entrant, so no other call can come between.
//
// Globals that describe the key last read, such as `used` in concurrency.ts, stay in the module that decodes them.
//
// What a call returns that is not a debt:

/** Lost to another thread: try again after a moment. */
export const RETRY: f64 = Infinity
/** One of several steps is done: try again at once. */
export const AGAIN: f64 = -Infinity

/** Why a call has no debt to return (NaN). */
export const REFUSED: i32 = 1
export const BANNED: i32 = 2
export const CONTENDED: i32 = 3
/** Denied only because this thread's clock is behind one that changed the key, or by which a key was evicted. */
export const LATE: i32 = 4
/** The call has an answer, but evicted a key that still owed something. */
export const EVICTED: i32 = 5
/** Passed on a shared counter, because the key found no room. */
export const OVERFLOWED: i32 = 6
/** The call has an answer, and work is open: what it holds counts beside the debt. */
export const HELD: i32 = 7

export let why: i32 = 0
/**
 * REFUSED and BANNED: microseconds to wait. LATE: the debt in units. EVICTED and HELD: the answer. OVERFLOWED: microseconds until the
 * counter owes nothing.
 */
export let detail: f64 = 0

@inline export function noAnswer(reason: i32, about: f64): f64 {
  why = reason
  detail = about
  return NaN
}

/** Microseconds until the last reservation may be used; not for buckets and GCRA, where the debt gives it. */
export let waitUs: i64 = 0

export function setWait(us: i64): void {
  waitUs = us
}

/** The permit last given or changed: slot 27 | owner of its key 3 | serial 2; and its expiry, in microseconds since the Unix epoch. */
export let givenPermit: i64 = 0
export let givenUntilUs: i64 = 0

@inline export function setPermit(permit: i64, untilUs: i64): void {
  givenPermit = permit
  givenUntilUs = untilUs
}

@inline export function setPermitExpiry(untilUs: i64): void {
  givenUntilUs = untilUs
}

/** Debt of the key that the last call evicted, in units; -1 without one. */
export let evictedDebt: i64 = -1

export function clearEvicted(): void {
  evictedDebt = -1
}

@inline export function setEvictedDebt(debt: i64): void {
  evictedDebt = debt
}

/** Debt of the key as last read or changed: units of the policy, or microseconds for a ban. */
export let debt: i64 = 0

@inline export function setDebt(owed: i64): void {
  debt = owed
}

/** The state word that the last `find` or `choose` read in the entry it returned. */
export let seenState: u64 = 0
/** The entry that `choose` found. */
export let chosen: usize = 0
/** Debt of the key in it, if `choose` returned LIVE. */
export let chosenDebt: i64 = 0

@inline export function setSeenState(state: u64): void {
  seenState = state
}

@inline export function setChoice(entry: usize, state: u64, debt: i64): void {
  chosen = entry
  seenState = state
  chosenDebt = debt
}

/** The identity that the last `completeClaim` wrote. */
export let claimedIdentity: u64 = 0

@inline export function setClaimedIdentity(identity: u64): void {
  claimedIdentity = identity
}
