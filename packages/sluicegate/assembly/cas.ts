import { add, load, raise, swap } from "./atomics"
import { EXPLORED } from "./build-flags"
import { claimedIdentity, expel, release, settle } from "./claim"
import { pause } from "./host"
import { BLOCKED_UNTIL, CAS_RETRIES, CONTENTIONS, EPOCH, EVICTIONS, GATES, GATE_COUNT, REFUSALS, STATE, TAKEOVER_HIGH } from "./memory-map"
import { blockValueAt, burst, capacity, debtAt, epoch, isOrdinary, refresh, sinceBase, unitsPerToken, unitsPerUs, valueAt, withinRange } from "./policy"
import { FREE, LIVE, MARKED, NOTHING, RESIDENT, RIVAL, choose, chosen, chosenDebt, find, lineAddress, residentDebt, roomAfterUs, seenState } from "./table"
import { rebased } from "./update"
import { BLOCK, DEEPEST_DEBT_BURSTS, PEEK, TAKE, step } from "./verbs"
import { blockFingerprint, claimMark, fingerprintOf, isBlock, stateWord, valueOf, withValue } from "./words"

/** Attempts before a call gives up with CONTENTION. */
const MAX_ATTEMPTS: i32 = 100
/** Attempts for which a mark is waited for before it counts as abandoned. */
const PATIENCE: i32 = EXPLORED ? 1 : 8
/** Attempts that only spin; later ones ask the host for a pause. */
const SPINS: i32 = 6
/**
 * Loads for which the first spin lasts, a few microseconds; it doubles with each attempt. While one thread stands back the other
 * keeps the cache line for a run of swaps, which is what makes two threads on one key cheaper than their quarrel.
 */
const SPIN_LOADS: i32 = 4096

/** Why the answer is not a number. */
export const REFUSED: i32 = 1
export const BLOCKED: i32 = 2
export const CONTENDED: i32 = 3
/** A newcomer denied only because this thread's clock reads earlier than one by which a key was forgotten. */
export const LATE: i32 = 4
/** Answered after all, but a key that still owed something had to be forgotten for it. */
export const EVICTED: i32 = 5

export let why: i32 = 0
/** REFUSED and BLOCKED: microseconds to wait. LATE: the debt in units. EVICTED: the answer. */
export let detail: f64 = 0
/** What the key forgotten by the last call owed, in units; -1 when none was. */
export let forgottenDebt: i64 = -1

const RETRY: f64 = Infinity

@inline export function unanswered(reason: i32, about: f64): f64 {
  why = reason
  detail = about
  return NaN
}

/**
 * The ordinary take: the first turn of the loop below for a key that stands first in its line, while no policy changes and no
 * block is in force. A third faster than the loop, which it leaves everything else to.
 */
export function take(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const entry = lineAddress(home)
  const state = load(entry + STATE)
  if (fingerprintOf(load(entry)) == fingerprint && isOrdinary(state, nowUs) && !isGated(fingerprint, nowUs) && tokens <= burst) {
    const us = sinceBase(nowUs)
    const debt = max<i64>(debtAt(valueOf(state), us), 0)
    const next = debt + tokens * unitsPerToken
    if (next <= capacity) {
      if (swap(entry + STATE, state, withValue(state, epoch, valueAt(next, us)))) return <f64>next
      add(CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state) return -1.0 - <f64>debt
  }
  return takeUnlessBlocked(fingerprint, home, tokens, nowUs)
}

/** Whether the key may be blocked: some key is, and one behind the same gate. */
@inline function isGated(fingerprint: u64, nowUs: i64): bool {
  return nowUs < <i64>load(BLOCKED_UNTIL) && nowUs < <i64>load(gateOf(fingerprint))
}

@inline function gateOf(fingerprint: u64): usize {
  return GATES + <usize>((fingerprint >> 1) % GATE_COUNT) * 8
}

/** Blocks for `us` microseconds, 0 lifts. Returns the microseconds left. */
export function block(fingerprint: u64, home: i32, us: i64, nowUs: i64): f64 {
  if (us > 0) {
    // First the gates, then the entry: once the entry stands, no take can pass a gate unseeing.
    raise(gateOf(fingerprint), nowUs + us)
    raise(BLOCKED_UNTIL, nowUs + us)
  }
  return change(BLOCK, blockFingerprint(fingerprint), home, us, nowUs)
}

/** Microseconds for which the key is still blocked. */
export function blockLeft(fingerprint: u64, home: i32, nowUs: i64): f64 {
  return isGated(fingerprint, nowUs) ? change(PEEK, blockFingerprint(fingerprint), home, 0, nowUs) : 0
}

function takeUnlessBlocked(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const left = blockLeft(fingerprint, home, nowUs)
  if (left != 0) return left > 0 ? unanswered(BLOCKED, left) : left
  return change(TAKE, fingerprint, home, tokens, nowUs)
}

/**
 * The one loop. What the verb makes of the key's debt is computed from a word that was read, and stands if the word still does.
 *
 * Returns the debt in units after it, or for a take that is denied -1 - debt; NaN when there is no answer: see `why`.
 */
export function change(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  forgottenDebt = -1
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) backOff(attempt)
    const entry = find(fingerprint, home)
    if (entry == 0) {
      const answer = moveIn(verb, fingerprint, home, tokens, nowUs, attempt)
      if (answer == RETRY) continue
      // No answer (NaN differs from itself) stays what it is, also when a key was forgotten in vain on the way to it.
      return forgottenDebt < 0 || answer != answer ? answer : unanswered(EVICTED, answer)
    }
    const state = seenState
    refresh()
    if (rebased(nowUs)) continue
    const debt = max<i64>(residentDebt(fingerprint, state, nowUs), 0)
    const next = step(verb, debt, weight(verb, tokens), capacity)
    if (next == debt) {
      // Nothing to swap: but did state and identity belong together?
      if (load(entry + STATE) == state) return verb == TAKE ? -1.0 - <f64>debt : <f64>debt
      continue
    }
    if (swap(entry + STATE, state, withValue(state, epoch, valueFor(fingerprint, next, nowUs)))) return <f64>next
    add(CAS_RETRIES, 1)
  }
  add(CONTENTIONS, 1)
  return unanswered(CONTENDED, 0)
}

/** A key that lives nowhere: it owes nothing, but counts from the latest time by which any key was forgotten. */
function moveIn(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, attempt: i32): f64 {
  refresh()
  if (rebased(nowUs)) return RETRY
  const debt = newcomersDebt(fingerprint, nowUs)
  const next = step(verb, debt, weight(verb, tokens), capacity)
  if (next == debt) return unmoved(verb, debt)

  const kind = choose(fingerprint, home, nowUs)
  if (kind == RESIDENT) return RETRY
  if (kind == NOTHING) {
    add(REFUSALS, 1)
    return unanswered(REFUSED, <f64>roomAfterUs(home, nowUs, unitsPerUs))
  }
  const entry = chosen
  const seen = seenState
  const owed = chosenDebt
  if (kind == RIVAL || kind == MARKED) {
    if (attempt < PATIENCE) return RETRY
    if (kind == RIVAL) {
      expel(entry, seen)
      return RETRY
    }
  } else if (kind != FREE) {
    // Before the mark: whoever misses the key in the table finds the time by which it was forgotten.
    raise(TAKEOVER_HIGH, nowUs)
  }
  const mark = claimMark(fingerprint, load(entry), seen)
  if (!swap(entry + STATE, seen, mark)) return RETRY
  if (kind == LIVE) {
    add(EVICTIONS, 1)
    forgottenDebt = owed
  }
  if (!settle(entry, mark, fingerprint, home)) return RETRY
  return firstState(verb, fingerprint, entry, mark, tokens, nowUs)
}

function firstState(verb: i32, fingerprint: u64, entry: usize, mark: u64, tokens: i64, nowUs: i64): f64 {
  const identity = claimedIdentity
  // After the rescan: a key that lived elsewhere in the range until then was forgotten by a time that is published now.
  refresh()
  const debt = newcomersDebt(fingerprint, nowUs)
  const next = step(verb, debt, weight(verb, tokens), capacity)
  if (next == debt || rebased(nowUs)) {
    release(entry, mark)
    return next == debt ? unmoved(verb, debt) : RETRY
  }
  return swap(entry + STATE, mark, stateWord(epoch, identity, valueFor(fingerprint, next, nowUs))) ? <f64>next : RETRY
}

function unmoved(verb: i32, debt: i64): f64 {
  if (verb != TAKE) return <f64>debt
  return debt > 0 ? unanswered(LATE, <f64>debt) : -1.0 - <f64>debt
}

@inline function newcomersDebt(fingerprint: u64, nowUs: i64): i64 {
  if (isBlock(fingerprint)) return 0
  return max<i64>(sinceBase(withinRange(<i64>load(TAKEOVER_HIGH))) - sinceBase(nowUs), 0) * unitsPerUs
}

@inline function valueFor(fingerprint: u64, debt: i64, nowUs: i64): u64 {
  const us = sinceBase(nowUs)
  return isBlock(fingerprint) ? blockValueAt(debt, us) : valueAt(debt, us)
}

/** Tokens in units. More than the deepest debt weighs no more than that; a block's "tokens" are microseconds. */
@inline function weight(verb: i32, tokens: i64): i64 {
  return verb == BLOCK ? tokens : min<i64>(tokens, DEEPEST_DEBT_BURSTS * burst + 1) * unitsPerToken
}

function backOff(attempt: i32): void {
  if (attempt > SPINS) {
    pause(attempt)
    return
  }
  if (EXPLORED) return
  for (let spin = SPIN_LOADS << attempt; spin > 0; spin--) load(EPOCH)
}
