import { AGAIN, BLOCKED, CONTENDED, EVICTED, LATE, REFUSED, RETRY, unanswered } from "./answers"
import { add, load, raise, swap } from "./atomics"
import { EXPLORED } from "./build-flags"
import { valueIn } from "./carry"
import { claimedIdentity, cleaned, expel, forget, release, settle } from "./claim"
import { isAncient } from "./concurrency"
import { changePermit, changePermits } from "./permits"
import { CONCURRENCY } from "./forms"
import { pause } from "./host"
import { BLOCKED_UNTIL, CAS_RETRIES, CONTENTIONS, EPOCH, EVICTIONS, GATES, GATE_COUNT, REFUSALS, STATE, TAKEOVER_HIGH } from "./memory-map"
import { burst, capacity, debtAt, epoch, form, isOrdinary, isRate, mostAheadUs, refresh, sinceBase, stride, unitsPerToken, unitsPerUs, valueAt } from "./policy"
import { replace, stageIn, staging } from "./replace"
import { base } from "./section"
import { debt, isAhead, isChange, newValue, stepped, stillStands } from "./standing"
import { FREE, LIVE, MARKED, NOTHING, RESIDENT, RIVAL, choose, chosen, chosenDebt, find, lineAddress, roomAfterUs, seenState } from "./table"
import { rebased } from "./update"
import { BLOCK, CANCEL, DEEPEST_DEBT_BURSTS, ENTER, PEEK, PENALIZE, RESERVE, RESET, TAKE } from "./verbs"
import { carryOver } from "./sweep"
import { blockFingerprint, claimMark, fingerprintOf, isBlock, lagOf, stateWord, valueOf, withValue } from "./words"

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

/** What the key forgotten by the last call owed, in units; -1 when none was. */
export let forgottenDebt: i64 = -1

/**
 * The ordinary take of a bucket or GCRA: the first turn of the loop below for a key that stands first in its line, while no
 * policy changes and no block is in force. A third faster than the loop, which it leaves everything else to.
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
      add(base + CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state) return -1.0 - <f64>debt
  }
  return takeUnlessBlocked(fingerprint, home, tokens, nowUs)
}

/** Whether the key may be blocked: some key is, and one behind the same gate. */
@inline function isGated(fingerprint: u64, nowUs: i64): bool {
  return nowUs < <i64>load(base + BLOCKED_UNTIL) && nowUs < <i64>load(gateOf(fingerprint))
}

@inline function gateOf(fingerprint: u64): usize {
  return base + GATES + <usize>((fingerprint >> 1) % GATE_COUNT) * 8
}

/** Blocks for `us` microseconds, 0 lifts. Returns the microseconds left. */
export function block(fingerprint: u64, home: i32, us: i64, nowUs: i64): f64 {
  if (us > 0) {
    // First the gates, then the entry: once the entry stands, no take can pass a gate unseeing.
    raise(gateOf(fingerprint), nowUs + us)
    raise(base + BLOCKED_UNTIL, nowUs + us)
  }
  return change(BLOCK, blockFingerprint(fingerprint), home, us, nowUs, 0)
}

/** Microseconds for which the key is still blocked. */
export function blockLeft(fingerprint: u64, home: i32, nowUs: i64): f64 {
  return isGated(fingerprint, nowUs) ? change(PEEK, blockFingerprint(fingerprint), home, 0, nowUs, 0) : 0
}

/** The same for every other form that one word holds. */
export function takeCounted(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const entry = lineAddress(home)
  const state = load(entry + STATE)
  if (fingerprintOf(load(entry)) == fingerprint && isOrdinary(state, nowUs) && stride == 0 && !isGated(fingerprint, nowUs)) {
    const value = valueOf(state)
    const next = stepped(TAKE, false, entry, value, sinceBase(nowUs), tokens, 0)
    if (next != value) {
      if (swap(entry + STATE, state, withValue(state, epoch, next))) return <f64>debt
      add(base + CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state && !isAhead()) return -1.0 - <f64>debt
  }
  return takeUnlessBlocked(fingerprint, home, tokens, nowUs)
}

/** A take of any form. */
export function takeUnlessBlocked(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  return unlessBlocked(TAKE, fingerprint, home, tokens, nowUs, 0)
}

/** A take that may lie in the future, by at most `mostUs`. */
export function reserve(fingerprint: u64, home: i32, tokens: i64, nowUs: i64, mostUs: i64): f64 {
  refresh()
  const ahead = min<i64>(mostUs, mostAheadUs())
  return unlessBlocked(RESERVE, fingerprint, home, tokens, nowUs, ahead)
}

/** The take written down in a descriptor instead of being made. The answer stands if the descriptor's swap does. */
export function stage(descriptor: usize, fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  stageIn(descriptor)
  const answer = takeUnlessBlocked(fingerprint, home, tokens, nowUs)
  stageIn(0)
  return answer
}

/** See `changePermit` in permits.ts; 0 also for a key that lives nowhere. */
export function changePermitOf(fingerprint: u64, home: i32, nowUs: i64, renew: bool, given: i64, untilUs: i64, tokens: i64): f64 {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) backOff(attempt)
    const entry = find(fingerprint, home)
    if (entry == 0) return 0
    const state = seenState
    refresh()
    if (rebased(nowUs)) continue
    if (lagOf(state, epoch) != 0) {
      carryOver(entry)
      continue
    }
    const answer = changePermit(renew, entry, state, valueOf(state), sinceBase(nowUs), given, untilUs, tokens)
    if (answer != RETRY) return answer
  }
  add(base + CONTENTIONS, 1)
  return unanswered(CONTENDED, 0)
}

function unlessBlocked(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64): f64 {
  const left = blockLeft(fingerprint, home, nowUs)
  if (left != 0) return left > 0 ? unanswered(BLOCKED, left) : left
  return change(verb, fingerprint, home, tokens, nowUs, bound)
}

/**
 * The one loop. What the verb makes of the key is computed from a word that was read, and stands if the word still does.
 *
 * Returns the debt in units after it, or for a take that is denied -1 - debt; NaN when there is no answer: see `why`.
 */
export function change(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64): f64 {
  forgottenDebt = -1
  let lost = 0
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const entry = find(fingerprint, home)
    const answer = entry == 0
      ? moveIn(verb, fingerprint, home, tokens, nowUs, bound, lost)
      : changeResident(verb, fingerprint, entry, tokens, nowUs, bound)
    if (answer == AGAIN) continue
    if (answer == RETRY) {
      backOff(++lost)
      continue
    }
    // No answer (NaN differs from itself) stays what it is, also when a key was forgotten in vain on the way to it.
    return forgottenDebt < 0 || answer != answer ? answer : unanswered(EVICTED, answer)
  }
  add(base + CONTENTIONS, 1)
  return unanswered(CONTENDED, 0)
}

/** A key that lives in `entry`, as `find` has just seen it. */
function changeResident(verb: i32, fingerprint: u64, entry: usize, tokens: i64, nowUs: i64, bound: i64): f64 {
  const state = seenState
  refresh()
  if (rebased(nowUs)) return AGAIN
  const ofBlock = isBlock(fingerprint)
  const lag = lagOf(state, epoch)
  const manyWords = stride != 0 && !ofBlock
  if (manyWords) {
    if (lag != 0) {
      // First as the policy in force writes it, so that all of its words are of one policy.
      carryOver(entry)
      return AGAIN
    }
    if (verb == RESET) return forget(entry, state) ? 0 : RETRY
  }
  const value = valueIn(state, lag, entry, ofBlock)
  const us = sinceBase(nowUs)
  if (form == CONCURRENCY && !ofBlock && isAncient(value, us)) return forget(entry, state) ? AGAIN : RETRY
  if (form == CONCURRENCY && !ofBlock) return changePermits(verb, entry, state, value, us, tokens)
  const next = stepped(verb, ofBlock, entry, value, us, weight(verb, tokens), boundOf(verb, ofBlock, tokens, bound))
  if (!isChange(value, next)) {
    // Nothing to swap: but did state and identity belong together?
    if (load(entry + STATE) != state || !stillStands(entry, ofBlock)) return RETRY
    if (verb == TAKE && !ofBlock && isAhead()) return unanswered(LATE, <f64>debt)
    return verb == TAKE || verb == RESERVE ? -1.0 - <f64>debt : <f64>debt
  }
  // Kept: making room for the swap may read the key again.
  const answer = <f64>debt
  const todo = replace(entry, state, next, manyWords)
  return todo == 0 ? answer : todo
}

/** A key that lives nowhere: it owes nothing, but counts from the latest time by which any key was forgotten. */
function moveIn(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64, lost: i32): f64 {
  refresh()
  if (rebased(nowUs)) return AGAIN
  const entering = arrival(verb, fingerprint)
  const answer = newcomer(entering, fingerprint, tokens, nowUs, bound)
  if (!moves) return unmoved(verb, answer)

  const kind = choose(fingerprint, home, nowUs)
  if (kind == RESIDENT) return AGAIN
  if (kind == NOTHING) {
    add(base + REFUSALS, 1)
    return unanswered(REFUSED, <f64>roomAfterUs(home, nowUs, unitsPerUs))
  }
  const entry = chosen
  const seen = seenState
  const owed = chosenDebt
  if (kind == RIVAL || kind == MARKED) {
    if (lost < PATIENCE) return RETRY
    if (kind == RIVAL) {
      expel(entry, seen)
      return RETRY
    }
  } else if (kind != FREE) {
    // Before the mark: whoever misses the key in the table finds the time by which it was forgotten.
    raise(base + TAKEOVER_HIGH, nowUs)
  }
  const mark = claimMark(fingerprint, load(entry), seen)
  if (!swap(entry + STATE, seen, mark)) return RETRY
  if (kind == LIVE) {
    add(base + EVICTIONS, 1)
    forgottenDebt = owed
  }
  if (!settle(entry, mark, fingerprint, home)) return RETRY
  return firstState(verb, fingerprint, entry, mark, tokens, nowUs, bound)
}

function firstState(verb: i32, fingerprint: u64, entry: usize, mark: u64, tokens: i64, nowUs: i64, bound: i64): f64 {
  const identity = claimedIdentity
  // After the rescan: a key that lived elsewhere in the range until then was forgotten by a time that is published now.
  refresh()
  const entering = arrival(verb, fingerprint)
  const answer = newcomer(entering, fingerprint, tokens, nowUs, bound)
  if (!moves || rebased(nowUs)) {
    release(entry, mark)
    return moves ? RETRY : unmoved(verb, answer)
  }
  if (stride != 0 && !isBlock(fingerprint) && !cleaned(entry, mark, identity)) return RETRY
  if (!swap(entry + STATE, mark, stateWord(epoch, identity, firstValue))) return RETRY
  return entering == ENTER ? AGAIN : <f64>answer
}

/** What a key does first that wants `verb` done: where several words have to change together, it comes in and does no more. */
@inline function arrival(verb: i32, fingerprint: u64): i32 {
  const comesFirst = (form == CONCURRENCY || staging != 0) && !isBlock(fingerprint)
  return comesFirst && (verb == TAKE || verb == RESERVE || verb == PENALIZE) ? ENTER : verb
}

/** Whether the newcomer moves in, and with which value. */
let moves: bool = false
let firstValue: u64 = 0

/** The debt of a newcomer after the verb. */
function newcomer(verb: i32, fingerprint: u64, tokens: i64, nowUs: i64, bound: i64): i64 {
  const ofBlock = isBlock(fingerprint)
  const fresh = newValue(ofBlock, nowUs, <i64>load(base + TAKEOVER_HIGH))
  const amount = weight(verb, tokens)
  firstValue = stepped(verb, ofBlock, 0, fresh, sinceBase(nowUs), amount, boundOf(verb, ofBlock, tokens, bound))
  moves = firstValue != fresh || verb == ENTER
  return debt
}

function unmoved(verb: i32, debt: i64): f64 {
  if (verb != TAKE && verb != RESERVE) return <f64>debt
  return debt > 0 ? unanswered(LATE, <f64>debt) : -1.0 - <f64>debt
}

/**
 * Tokens in units. More than the deepest debt weighs no more than that; a block's "tokens" are microseconds, and what a cancelled
 * reservation of a bucket or GCRA still holds is counted in units by the caller.
 */
@inline function weight(verb: i32, tokens: i64): i64 {
  return verb == BLOCK || (verb == CANCEL && isRate()) ? tokens : min<i64>(tokens, DEEPEST_DEBT_BURSTS * burst + 1) * unitsPerToken
}

/** A reservation's bound as its form wants it: of buckets and GCRA the deepest debt, otherwise the longest wait. */
@inline function boundOf(verb: i32, ofBlock: bool, tokens: i64, bound: i64): i64 {
  if (verb != RESERVE || ofBlock || !isRate()) return bound
  return tokens > burst ? 0 : capacity + bound * unitsPerUs
}

function backOff(attempt: i32): void {
  if (attempt > SPINS) {
    pause(attempt)
    return
  }
  if (EXPLORED) return
  for (let spin = SPIN_LOADS << attempt; spin > 0; spin--) load(base + EPOCH)
}
