import { CAS_RETRIES, CONTENTIONS, STATE, base } from "../memory-map"
import { AGAIN, BANNED, CONTENDED, EVICTED, LATE, RETRY, clearEvicted, debt, evictedDebt, noAnswer, seenState, setDebt } from "../results"
import { add, load, swap } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { stageIn } from "../atomics/kcas"
import { banFingerprint, fingerprintOf, isBan, lagOf, valueOf, withValue } from "../atomics/words"
import { CONCURRENCY, WIDE } from "../policy/encodings"
import { burst, capacity, encoding, epoch, generation, isOrdinary, mostAheadUs, refresh, sinceBase, stride, unitsPerToken } from "../policy/policy"
import { called, setInterval } from "../algorithms/call-rate"
import { isAncient } from "../algorithms/concurrency"
import { isAhead, isChange, isUnchanged, stepped } from "../algorithms/key-state"
import { migratedValue } from "../algorithms/migrate-value"
import { changePermit, changePermits } from "../algorithms/permits"
import { resetWithPrevious } from "../algorithms/previous-count"
import { boundOf, debtAt, valueAt, weight } from "../algorithms/rate"
import { BAN, CALL, CANCEL, PEEK, RESERVE, RESET, TAKE } from "../algorithms/verbs"
import { addToBanFilter, mayBeBanned } from "./ban-filter"
import { evict } from "./claim"
import { insert } from "./insert"
import { lineAddress } from "./layout"
import { migrate } from "./migrate"
import { replaceState } from "./replace-state"
import { find } from "./search"
import { rebased } from "./update"

/** Attempts before a call gives up with CONTENTION. */
const MAX_ATTEMPTS: i32 = 100

/**
 * The ordinary take of a bucket or GCRA: the first turn of the loop below for a key in the first entry of its line, while no
 * policy changes and no ban is in force. A third faster than the loop, which handles everything else.
 */
export function take(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const entry = lineAddress(home)
  const state = load(entry + STATE)
  if (fingerprintOf(load(entry)) == fingerprint && isOrdinary(state, nowUs) && !mayBeBanned(fingerprint, nowUs) && tokens <= burst) {
    const us = sinceBase(nowUs)
    const debt = max<i64>(debtAt(valueOf(state), us), 0)
    const next = debt + tokens * unitsPerToken
    if (next <= capacity) {
      if (swap(entry + STATE, state, withValue(state, epoch, valueAt(next, us)))) return <f64>next
      add(base + CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state) return -1.0 - <f64>debt
  }
  return takeUnlessBanned(fingerprint, home, tokens, nowUs)
}

/** The same for all other encodings; those of one word have a fast path too. */
export function takeAny(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const entry = lineAddress(home)
  const state = load(entry + STATE)
  if (fingerprintOf(load(entry)) == fingerprint && isOrdinary(state, nowUs) && stride == 0 && !mayBeBanned(fingerprint, nowUs)) {
    const value = valueOf(state)
    const next = stepped(TAKE, false, entry, value, sinceBase(nowUs), tokens, 0)
    if (isChange(value, next)) {
      if (swap(entry + STATE, state, withValue(state, epoch, next))) return <f64>debt
      add(base + CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state && !isAhead()) return -1.0 - <f64>debt
  }
  return takeUnlessBanned(fingerprint, home, tokens, nowUs)
}

/**
 * A take at the rate of the call, in units of call-rate.ts, where no bans are. Returns 0 or more if it passes, -1 or less if not, NaN
 * when there is no answer; `debt` is the key's afterwards.
 */
export function takeOfCall(fingerprint: u64, home: i32, interval: i64, tolerance: i64, amount: i64, nowUs: i64): f64 {
  setInterval(interval)
  const entry = lineAddress(home)
  const state = load(entry + STATE)
  if (fingerprintOf(load(entry)) == fingerprint && isOrdinary(state, nowUs)) {
    const us = sinceBase(nowUs)
    const owed = max<i64>(debtAt(valueOf(state), us), 0)
    const next = called(owed, amount, tolerance)
    setDebt(next)
    if (next != owed) {
      if (swap(entry + STATE, state, withValue(state, epoch, valueAt(next, us)))) return 0
      add(base + CAS_RETRIES, 1)
      backOff(0)
    } else if (load(entry + STATE) == state) return -1
  }
  return change(CALL, fingerprint, home, amount, nowUs, tolerance)
}

/** Bans for `us` microseconds; 0 lifts the ban. Returns the microseconds left. */
export function ban(fingerprint: u64, home: i32, us: i64, nowUs: i64): f64 {
  if (us > 0) {
    // First the filter, then the entry: once the entry stands, no take can miss it behind the filter.
    addToBanFilter(fingerprint, nowUs + us)
  }
  return change(BAN, banFingerprint(fingerprint), home, us, nowUs, 0)
}

/** Microseconds until the key's ban ends. */
export function banLeft(fingerprint: u64, home: i32, nowUs: i64): f64 {
  return mayBeBanned(fingerprint, nowUs) ? change(PEEK, banFingerprint(fingerprint), home, 0, nowUs, 0) : 0
}

/** A take of any encoding, without a fast path. */
function takeUnlessBanned(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  return unlessBanned(TAKE, fingerprint, home, tokens, nowUs, 0)
}

/** A take that may lie in the future, by at most `mostUs`. */
export function reserve(fingerprint: u64, home: i32, tokens: i64, nowUs: i64, mostUs: i64): f64 {
  refresh()
  const ahead = min<i64>(mostUs, mostAheadUs())
  return unlessBanned(RESERVE, fingerprint, home, tokens, nowUs, ahead)
}

let cancelledGeneration: i64 = 0

/** The next cancel gives something back only while the numbers are those of this generation, which it checks at each attempt. */
export function cancelOnlyOf(generationOfCharge: i64): void {
  cancelledGeneration = generationOfCharge
}

/** Records the take in a descriptor instead of making it. The answer holds if the descriptor commits. */
export function stage(descriptor: usize, fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  stageIn(descriptor)
  const answer = takeUnlessBanned(fingerprint, home, tokens, nowUs)
  stageIn(0)
  return answer
}

/** See `changePermit` in permits.ts; 0 also for a key outside of the table. */
export function changePermitOf(fingerprint: u64, home: i32, nowUs: i64, renew: bool, given: i64, untilUs: i64, tokens: i64): f64 {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) backOff(attempt)
    const entry = find(fingerprint, home)
    if (entry == 0) return 0
    const state = seenState
    refresh()
    if (rebased(nowUs)) continue
    if (lagOf(state, epoch) != 0) {
      if (!migrate(entry)) break
      continue
    }
    const answer = changePermit(renew, entry, state, valueOf(state), sinceBase(nowUs), given, untilUs, tokens)
    if (answer != RETRY) return answer
  }
  return givenUp()
}

function unlessBanned(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64): f64 {
  const left = banLeft(fingerprint, home, nowUs)
  if (left != 0) return left > 0 ? noAnswer(BANNED, left) : left
  return change(verb, fingerprint, home, tokens, nowUs, bound)
}

/**
 * The one loop: find the key, compute what the verb makes of the word that was read, and swap if the word still stands.
 *
 * Returns the debt in units afterwards, or -1 - debt for a denied take; NaN when there is no answer: see `why`.
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

function givenUp(): f64 {
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
  const manyWords = stride != 0 && !ofBan
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
  const step = verb == CANCEL && generation != cancelledGeneration ? PEEK : verb
  const next = stepped(step, ofBan, entry, value, us, weight(step, tokens), boundOf(step, ofBan, tokens, bound))
  if (!isChange(value, next)) {
    // Nothing to swap. Check that state and identity belonged together.
    if (load(entry + STATE) != state || !isUnchanged(entry, ofBan)) return RETRY
    if (verb == TAKE && !ofBan && isAhead()) return noAnswer(LATE, <f64>debt)
    return verb == TAKE || verb == RESERVE || verb == CALL ? -1.0 - <f64>debt : <f64>debt
  }
  // A copy: making room for the swap may read the key again.
  const answer = <f64>debt
  const todo = replaceState(entry, state, next, manyWords)
  return todo == 0 ? answer : todo
}
