// What a call answers when it is not a debt.

/** Lost against another thread: once more, after a moment. */
export const RETRY: f64 = Infinity
/** One step of several is made: once more, at once. */
export const AGAIN: f64 = -Infinity

/** Why the answer is not a number. */
export const REFUSED: i32 = 1
export const BANNED: i32 = 2
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

@inline export function noAnswer(reason: i32, about: f64): f64 {
  why = reason
  detail = about
  return NaN
}

/** Microseconds until what was reserved last may be spent; not of buckets and GCRA, where the debt says it. */
export let waitUs: i64 = 0

export function setWait(us: i64): void {
  waitUs = us
}

/** The permit last given or changed: its slot 27 | its key's owner 3 | serial 2, and when it expires, in microseconds since the Unix epoch. */
export let givenPermit: i64 = 0
export let givenUntilUs: i64 = 0

@inline export function setPermit(permit: i64, untilUs: i64): void {
  givenPermit = permit
  givenUntilUs = untilUs
}

@inline export function setPermitExpiry(untilUs: i64): void {
  givenUntilUs = untilUs
}

/** What the key forgotten by the last call owed, in units; -1 when none was. */
export let evictedDebt: i64 = -1

export function clearEvicted(): void {
  evictedDebt = -1
}

@inline export function setEvictedDebt(debt: i64): void {
  evictedDebt = debt
}

/** Debt of the key as last read or changed: units of the policy, of a block microseconds. */
export let debt: i64 = 0

@inline export function setDebt(owed: i64): void {
  debt = owed
}

/** The state word that the last `find` or `choose` read in the entry it returned. */
export let seenState: u64 = 0
/** The entry that `choose` found. */
export let chosen: usize = 0
/** Debt of a LIVE choice. */
export let chosenDebt: i64 = 0

@inline export function setSeenState(state: u64): void {
  seenState = state
}

@inline export function setChoice(entry: usize, state: u64, debt: i64): void {
  chosen = entry
  seenState = state
  chosenDebt = debt
}

/** The identity under which the last `settle` moved in. */
export let claimedIdentity: u64 = 0

@inline export function setClaimedIdentity(identity: u64): void {
  claimedIdentity = identity
}
