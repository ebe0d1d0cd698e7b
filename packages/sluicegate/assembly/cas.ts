import { AGAIN, BLOCKED, CONTENDED, EVICTED, LATE, RETRY, unanswered } from "./answers"
import { add, load, swap } from "./atomics"
import { backOff } from "./back-off"
import { valueIn } from "./carry"
import { forget } from "./claim"
import { isAncient } from "./concurrency"
import { CONCURRENCY, WIDE } from "./forms"
import { closeGates, isGated } from "./gates"
import { CAS_RETRIES, CONTENTIONS, STATE } from "./memory-map"
import { forgetNothing, forgottenDebt, moveIn } from "./move-in"
import { changePermit, changePermits } from "./permits"
import { burst, capacity, debtAt, epoch, form, isOrdinary, mostAheadUs, refresh, sinceBase, stride, unitsPerToken, valueAt } from "./policy"
import { resetWithPrevious } from "./previous-count"
import { replace, stageIn } from "./replace"
import { base } from "./section"
import { debt, isAhead, isChange, stepped, stillStands } from "./standing"
import { carryOver } from "./sweep"
import { find, lineAddress, seenState } from "./table"
import { rebased } from "./update"
import { BLOCK, PEEK, RESERVE, RESET, TAKE } from "./verbs"
import { boundOf, weight } from "./weight"
import { blockFingerprint, fingerprintOf, isBlock, lagOf, valueOf, withValue } from "./words"

/** Attempts before a call gives up with CONTENTION. */
const MAX_ATTEMPTS: i32 = 100

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

/** The same for every other form, of which those that one word holds have a quick way, too. */
export function takeAny(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const entry = lineAddress(home)
  const state = load(entry + STATE)
  if (fingerprintOf(load(entry)) == fingerprint && isOrdinary(state, nowUs) && stride == 0 && !isGated(fingerprint, nowUs)) {
    const value = valueOf(state)
    const next = stepped(TAKE, false, entry, value, sinceBase(nowUs), tokens, 0)
    if (isChange(value, next)) {
      if (swap(entry + STATE, state, withValue(state, epoch, next))) return <f64>debt
      add(base + CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state && !isAhead()) return -1.0 - <f64>debt
  }
  return takeUnlessBlocked(fingerprint, home, tokens, nowUs)
}

/** Blocks for `us` microseconds, 0 lifts. Returns the microseconds left. */
export function block(fingerprint: u64, home: i32, us: i64, nowUs: i64): f64 {
  if (us > 0) {
    // First the gates, then the entry: once the entry stands, no take can pass a gate unseeing.
    closeGates(fingerprint, nowUs + us)
  }
  return change(BLOCK, blockFingerprint(fingerprint), home, us, nowUs, 0)
}

/** Microseconds for which the key is still blocked. */
export function blockLeft(fingerprint: u64, home: i32, nowUs: i64): f64 {
  return isGated(fingerprint, nowUs) ? change(PEEK, blockFingerprint(fingerprint), home, 0, nowUs, 0) : 0
}

/** A take of any form, the long way. */
function takeUnlessBlocked(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
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
      if (!carryOver(entry)) break
      continue
    }
    const answer = changePermit(renew, entry, state, valueOf(state), sinceBase(nowUs), given, untilUs, tokens)
    if (answer != RETRY) return answer
  }
  return givenUp()
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
  forgetNothing()
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
  return givenUp()
}

function givenUp(): f64 {
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
      return carryOver(entry) ? AGAIN : givenUp()
    }
    // Permits are more words than can be emptied together. Any other key stays where it is: one that is unknown counts from the latest time
    // by which any key was forgotten, which may lie ahead of a clock that stepped back.
    if (verb == RESET && form == CONCURRENCY) return forget(entry, state) ? 0 : RETRY
    if (verb == RESET && form == WIDE) return resetWithPrevious(entry, state) ? 0 : RETRY
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
