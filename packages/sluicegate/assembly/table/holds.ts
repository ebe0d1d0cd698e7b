import { STATE, base, CAS_RETRIES } from "../memory-map"
import { AGAIN, EVICTED, HELD, LATE, REFUSED, RETRY, clearEvicted, debt, noAnswer, seenState, why } from "../results"
import { add, load } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { addWord, commit, openDescriptor, resolved, staging, swapBoth } from "../atomics/kcas"
import { isHeld, lagOf, valueOf } from "../atomics/words"
import { capacity, epoch, refresh, sinceBase } from "../policy/policy"
import {
  endAfter, endBeside, held, isOfRing, isRingUnchanged, nameIn, nextVersion, ringWord, ringWordOf, spareSum, sumOf,
} from "../algorithms/hold-ring"
import { isAhead, isUnchanged, stepped } from "../algorithms/key-state"
import { weight } from "../algorithms/rate"
import { INSERT, PEEK, PENALIZE, TAKE } from "../algorithms/verbs"
import { banLeft, unlessBanned } from "./bans"
import { beginSpending, endSpending } from "./beside-holds"
import { MAX_ATTEMPTS, change, givenUp } from "./cas-loop"
import { migrate } from "./migrate"
import { NONE_LEFT, attach, tidied } from "./rings"
import { find } from "./search"
import { rebased } from "./update"

// Work that is open: what it holds, by the time at which that ends. All but `spend` change the ring alone.

// The key with a ring, as last found.
let entry: usize = 0
let state: u64 = 0
let answer: f64 = 0

/** Results of {@link found}. */
const FOUND: i32 = 0
const NO_KEY: i32 = 1
const NO_RING: i32 = 2
const CHANGED: i32 = 3

/** Finds the key, under the policy in force, and reads its ring. */
function found(fingerprint: u64, home: i32, nowUs: i64): i32 {
  entry = find(fingerprint, home)
  if (entry == 0) return NO_KEY
  state = seenState
  refresh()
  if (rebased(nowUs)) return CHANGED
  if (lagOf(state, epoch) != 0) {
    migrate(entry)
    return CHANGED
  }
  if (!isHeld(state)) return NO_RING
  return tidied(entry, state, nowUs) == 0 ? FOUND : CHANGED
}

/**
 * Finds or makes a place for an end in the ring of the key. Returns the end: a later one where the ring has no more places; NaN when key or ring
 * find no room.
 */
export function prepare(fingerprint: u64, home: i32, endUs: i64, nowUs: i64): f64 {
  let hasEvicted = false
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const outcome = found(fingerprint, home, nowUs)
    if (outcome == NO_KEY) {
      const inserted = change(INSERT, fingerprint, home, 0, nowUs, 0)
      if (inserted == inserted) continue
      if (why != EVICTED) return inserted
      hasEvicted = true
    } else if (outcome == NO_RING) {
      const attached = attach(entry, state, endUs, nowUs)
      if (attached == NONE_LEFT) return noAnswer(REFUSED, <f64>(endUs - nowUs))
      if (attached != 0) backOff(attempt)
    } else if (outcome == FOUND) {
      const end = placedAt(endUs)
      if (end == 0) return noAnswer(REFUSED, <f64>(endUs - nowUs))
      if (end > 0) return hasEvicted ? noAnswer(EVICTED, <f64>end) : <f64>end
      backOff(attempt)
    } else if (attempt > 1) backOff(attempt)
  }
  return givenUp()
}

/** A place for an end in the ring last read: the end, or a later one; 0 when all are earlier; -1 when something has changed. */
function placedAt(endUs: i64): i64 {
  if (sumOf(endUs) != 0) return endUs
  const sum = spareSum(endUs)
  if (sum == 0) {
    const later = endAfter(endUs)
    return isRingUnchanged(entry) ? later : -1
  }
  const descriptor = openDescriptor()
  if (descriptor == 0) return -1
  addWord(descriptor, ringWordOf(entry), ringWord, nextVersion(ringWord))
  addWord(descriptor, endBeside(sum), resolved(endBeside(sum)), <u64>endUs)
  addWord(descriptor, sum, resolved(sum), 0)
  return commit(descriptor) ? endUs : -1
}

/** The ring in which a hold was last opened. */
export let ringOpened: u64 = 0

/**
 * Stages a hold that ends at an end that was prepared. Returns the debt, or -1 - debt when there is no room beside what is held already; AGAIN:
 * prepare it first.
 */
export function hold(fingerprint: u64, home: i32, tokens: i64, endUs: i64, nowUs: i64): f64 {
  const left = banLeft(fingerprint, home, nowUs)
  if (left != 0) return unlessBanned(PEEK, fingerprint, home, 0, nowUs, 0)
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 1) backOff(attempt)
    const outcome = found(fingerprint, home, nowUs)
    if (outcome == CHANGED) continue
    const sum = outcome == FOUND ? sumOf(endUs) : 0
    if (sum == 0) return AGAIN
    stepped(PEEK, false, entry, valueOf(state), sinceBase(nowUs), tokens, 0)
    const passes = debt + weight(TAKE, held) + weight(TAKE, tokens) <= capacity
    if (!isUnchanged(entry, false)) continue
    if (!passes) {
      if (load(entry + STATE) != state || !isRingUnchanged(entry)) continue
      if (isAhead()) return noAnswer(LATE, <f64>debt)
      return held > 0 ? noAnswer(HELD, -1.0 - <f64>debt) : -1.0 - <f64>debt
    }
    const before = resolved(sum)
    addWord(staging, entry + STATE, state, state)
    addWord(staging, ringWordOf(entry), ringWord, nextVersion(ringWord))
    addWord(staging, sum, before, before + <u64>tokens)
    ringOpened = nameIn(ringWord)
    return <f64>debt
  }
  return givenUp()
}

/** More is not held of a key: what is loaded again and again must stay a number. */
const MOST_LOADED: u64 = (1 << 53) - 1

/**
 * Adds tokens to what is held until an end, or a later one, whatever the key owes. Returns 1, also where key or ring find no room: then the work
 * spends what is free. NaN without an answer.
 */
export function holdCarried(fingerprint: u64, home: i32, tokens: i64, endUs: i64, nowUs: i64): f64 {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const end = prepare(fingerprint, home, endUs, nowUs)
    if (end != end) {
      if (why == EVICTED) continue
      return why == REFUSED ? 1 : end
    }
    if (holdMore(fingerprint, home, tokens, <i64>end, nowUs)) return 1
  }
  return givenUp()
}

/** Of an end that was prepared. False: prepare it again. */
function holdMore(fingerprint: u64, home: i32, tokens: i64, endUs: i64, nowUs: i64): bool {
  if (found(fingerprint, home, nowUs) != FOUND) return false
  const sum = sumOf(endUs)
  return sum != 0 && heldMore(sum, tokens)
}

/** The same in an entry of a table that no other thread uses, with a place for the end if there is any. */
export function holdLoaded(at: usize, tokens: i64, endUs: i64, nowUs: i64): void {
  entry = at
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    state = load(entry + STATE)
    if (!isHeld(state)) {
      if (attach(entry, state, endUs, nowUs) == NONE_LEFT) return
      continue
    }
    if (tidied(entry, state, nowUs) != 0) continue
    const sum = sumOf(endUs)
    if (sum != 0) {
      heldMore(sum, tokens)
      return
    }
    const end = placedAt(endUs)
    if (end == 0) return
    if (end > 0) endUs = end
  }
}

function heldMore(sum: usize, tokens: i64): bool {
  const before = resolved(sum)
  return swapBoth(ringWordOf(entry), ringWord, nextVersion(ringWord), sum, before, min<u64>(before + <u64>tokens, MOST_LOADED))
}

/**
 * Spends of a hold of `rest` tokens, then of what nobody holds. Returns the debt afterwards, or -1 - debt when that is not enough. `isForced`: it is
 * spent all the same, and the rest of the hold is free. `ignoresBan`: of a key that is banned, too.
 */
export function spend(
  fingerprint: u64, home: i32, tokens: i64, nowUs: i64, rest: i64, endUs: i64, ring: u64, isForced: bool, ignoresBan: bool,
): f64 {
  const verb = isForced ? PENALIZE : TAKE
  beginSpending(rest, endUs, ring)
  const answer = ignoresBan ? change(verb, fingerprint, home, tokens, nowUs, 0) : unlessBanned(verb, fingerprint, home, tokens, nowUs, 0)
  endSpending()
  return answer
}

/** Moves tokens of a hold to a later end. Returns the end that it has then: as before when the ring has no place; 0 when the hold has ended. */
export function renew(fingerprint: u64, home: i32, tokens: i64, fromUs: i64, toUs: i64, ring: u64, nowUs: i64): f64 {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 1) backOff(attempt)
    const outcome = found(fingerprint, home, nowUs)
    if (outcome == CHANGED) continue
    const from = outcome == FOUND && isOfRing(ring) ? sumOf(fromUs) : 0
    const there = from == 0 ? 0 : resolved(from)
    const moved = min<u64>(<u64>tokens, there)
    if (moved == 0) return 0
    const to = sumOf(toUs)
    if (to == 0) {
      const end = placedAt(toUs)
      if (end == 0) return <f64>fromUs
      if (end > 0) toUs = end
      continue
    }
    if (to == from) return <f64>fromUs
    const descriptor = openDescriptor()
    if (descriptor == 0) continue
    const before = resolved(to)
    addWord(descriptor, ringWordOf(entry), ringWord, nextVersion(ringWord))
    addWord(descriptor, from, there, there - moved)
    addWord(descriptor, to, before, before + moved)
    if (commit(descriptor)) return <f64>toUs
    add(base + CAS_RETRIES, 1)
  }
  return givenUp()
}
