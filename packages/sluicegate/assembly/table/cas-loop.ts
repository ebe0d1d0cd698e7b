import { CONTENTIONS, STATE, base } from "../memory-map"
import { AGAIN, CONTENDED, EVICTED, LATE, RETRY, clearEvicted, debt, evictedDebt, noAnswer, seenState } from "../results"
import { add, load } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { isBan, isHeld, lagOf } from "../atomics/words"
import { CONCURRENCY, WIDE } from "../policy/encodings"
import { encoding, epoch, generation, refresh, sinceBase, stride } from "../policy/policy"
import { isAncient } from "../algorithms/concurrency"
import { isAhead, isChange, isUnchanged, stepped } from "../algorithms/key-state"
import { migratedValue } from "../algorithms/migrate-value"
import { changePermits } from "../algorithms/permits"
import { resetWithPrevious } from "../algorithms/previous-count"
import { boundOf, weight } from "../algorithms/rate"
import { CALL, CANCEL, PEEK, RESERVE, RESET, TAKE } from "../algorithms/verbs"
import { changeBesideHolds, isWithinHold, seesHolds, spendWithinHold } from "./beside-holds"
import { evict } from "./claim"
import { insert } from "./insert"
import { migrate } from "./migrate"
import { replaceState } from "./replace-state"
import { tidied } from "./rings"
import { find } from "./search"
import { rebased } from "./update"

/** Attempts before a call gives up with CONTENTION. */
export const MAX_ATTEMPTS: i32 = 100

let cancelledGeneration: i64 = 0

/** The next cancel gives something back only while the numbers are those of this generation, which it checks at each attempt. */
export function cancelOnlyOf(generationOfCharge: i64): void {
  cancelledGeneration = generationOfCharge
}

/**
 * The one loop: find the key, compute what the verb makes of the word that was read, and swap if the word still stands.
 *
 * Returns the debt in units afterwards, or -1 - debt for a denied take and for a cancel that gave nothing back; NaN when there is no answer: see `why`.
 */
export function change(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64): f64 {
  clearEvicted()
  let lost = 0
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const entry = find(fingerprint, home)
    const answer = entry == 0
      ? insert(verb, fingerprint, home, tokens, nowUs, bound, lost)
      : changeResident(verb, fingerprint, entry, tokens, nowUs, bound)
    if (answer == AGAIN) continue
    if (answer == RETRY) {
      backOff(++lost)
      continue
    }
    // A missing answer (NaN differs from itself) stays missing, also when the call evicted a key in vain.
    return evictedDebt < 0 || answer != answer ? answer : noAnswer(EVICTED, answer)
  }
  return givenUp()
}

export function givenUp(): f64 {
  add(base + CONTENTIONS, 1)
  return noAnswer(CONTENDED, 0)
}

/** A key that lives in `entry`, as `find` has just read it. */
function changeResident(verb: i32, fingerprint: u64, entry: usize, tokens: i64, nowUs: i64, bound: i64): f64 {
  const state = seenState
  refresh()
  if (rebased(nowUs)) return AGAIN
  const ofBan = isBan(fingerprint)
  const lag = lagOf(state, epoch)
  const manyWords = (stride != 0 || isHeld(state)) && !ofBan
  if (manyWords) {
    if (lag != 0) {
      // Migrate first, so that all of the key's words are of one policy.
      return migrate(entry) ? AGAIN : givenUp()
    }
    // Permits are more words than one swap can clear. Any other key stays where it is: an unknown key counts from the latest time by
    // which any key was evicted, which may lie ahead of a clock that stepped back.
    if (verb == RESET && encoding == CONCURRENCY) return evict(entry, state) ? 0 : RETRY
    if (verb == RESET && encoding == WIDE) return resetWithPrevious(entry, state) ? 0 : RETRY
  }
  const value = migratedValue(state, lag, entry, ofBan)
  const us = sinceBase(nowUs)
  if (encoding == CONCURRENCY && !ofBan && isAncient(value, us)) return evict(entry, state) ? AGAIN : RETRY
  if (encoding == CONCURRENCY && !ofBan) return changePermits(verb, entry, state, value, us, tokens)
  if (isHeld(state) && seesHolds(verb)) {
    if (isWithinHold(verb, entry, tokens, nowUs)) return spendWithinHold(entry, state, value, us, tokens)
    const todo = tidied(entry, state, nowUs)
    return todo == 0 ? changeBesideHolds(verb, entry, state, value, us, tokens, bound) : todo
  }
  const step = verb == CANCEL && generation != cancelledGeneration ? PEEK : verb
  const next = stepped(step, ofBan, entry, value, us, weight(step, tokens), boundOf(step, ofBan, tokens, bound))
  if (!isChange(value, next)) {
    // Nothing to swap. Check that state and identity belonged together.
    if (load(entry + STATE) != state || !isUnchanged(entry, ofBan)) return RETRY
    if (verb == TAKE && !ofBan && isAhead()) return noAnswer(LATE, <f64>debt)
    return verb == TAKE || verb == RESERVE || verb == CALL || verb == CANCEL ? -1.0 - <f64>debt : <f64>debt
  }
  // A copy: making room for the swap may read the key again.
  const answer = <f64>debt
  const todo = replaceState(entry, state, next, manyWords)
  return todo == 0 ? answer : todo
}
