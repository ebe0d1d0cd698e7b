import { CAS_RETRIES, STATE, base } from "../memory-map"
import { HELD, LATE, RETRY, debt, noAnswer, setWait } from "../results"
import { add, load } from "../atomics/atomics"
import { addWord, closeDescriptor, commit, openDescriptor, resolved, stageIn, staging } from "../atomics/kcas"
import { stride } from "../policy/policy"
import { held, isOfRing, isRingUnchanged, nextVersion, readRingHead, ringWord, ringWordOf, sumOf } from "../algorithms/hold-ring"
import { isAhead, isChange, isUnchanged, stepped } from "../algorithms/key-state"
import { boundOf, weight } from "../algorithms/rate"
import { PEEK, PENALIZE, RESERVE, TAKE } from "../algorithms/verbs"
import { replaceState } from "./replace-state"

// Verbs on a key with open work, whose ring has just been read. What is held counts in each check and is not charged: a take passes when
// debt, holds and cost fit. The swap of the state goes together with the ring word, so that the check was true when it was made.

// What is spent comes from a hold first: so many tokens, in the slot with this end, of the ring with this name.
let isSpending: bool = false
let ofRest: i64 = 0
let ofEndUs: i64 = 0
let ofRing: u64 = 0

/** The verbs up to {@link endSpending} are of a hold: a take spends from it what is within, a penalty spends all the same and ends it. */
export function beginSpending(rest: i64, endUs: i64, ring: u64): void {
  isSpending = true
  ofRest = rest
  ofEndUs = endUs
  ofRing = ring
}

export function endSpending(): void {
  isSpending = false
}

/** Whether the verb depends on what is held. All others change what is spent, whatever that is. */
@inline export function seesHolds(verb: i32): bool {
  return verb == TAKE || verb == PEEK || verb == RESERVE || isSpending
}

// Where the hold is in the ring last read, 0 when it has ended, and what is in that slot.
let sum: usize = 0
let there: u64 = 0

function findHold(): void {
  sum = ofRest > 0 && isOfRing(ofRing) ? sumOf(ofEndUs) : 0
  there = sum == 0 ? 0 : resolved(sum)
}

/** Whether a take is of what its own hold still has: then it does not depend on what others hold, and no more of the ring is read. */
export function isWithinHold(verb: i32, entry: usize, tokens: i64, nowUs: i64): bool {
  if (!isSpending || verb != TAKE || tokens > ofRest || !readRingHead(entry, nowUs)) return false
  findHold()
  return tokens <= <i64>there
}

/** Such a take, as `change` in cas-loop.ts returns it. It was granted before: whatever the key owes by now. */
export function spendWithinHold(entry: usize, state: u64, value: u64, us: i64, tokens: i64): f64 {
  const next = stepped(PENALIZE, false, entry, value, us, weight(PENALIZE, tokens), 0)
  const answer = <f64>debt
  const todo = replaceWithRing(entry, state, next, isChange(value, next), tokens)
  return todo == 0 ? answer : todo
}

/** Applies any other verb; HELD stands beside what was answered. */
export function changeBesideHolds(verb: i32, entry: usize, state: u64, value: u64, us: i64, tokens: i64, bound: i64): f64 {
  let step = verb
  let others = held
  let freed: i64 = 0
  if (isSpending) {
    findHold()
    const rest = min<i64>(ofRest, <i64>there)
    others -= rest
    freed = verb == TAKE && tokens <= rest ? tokens : rest
    if (tokens <= rest) step = PENALIZE
  } else if (verb == RESERVE && held > 0) {
    // Nothing is reserved ahead of holds.
    step = TAKE
    setWait(0)
  }
  const mostHere = step == TAKE ? weight(TAKE, others) : boundOf(step, false, tokens, bound)
  const next = stepped(step, false, entry, value, us, weight(step, tokens), mostHere)
  const isSwap = isChange(value, next)
  if (!isSwap && (freed == 0 || step == TAKE)) {
    if (load(entry + STATE) != state || !isUnchanged(entry, false) || !isRingUnchanged(entry)) return RETRY
    if (verb == TAKE && isAhead()) return noAnswer(LATE, <f64>debt)
    return besides(verb == TAKE || verb == RESERVE ? -1.0 - <f64>debt : <f64>debt)
  }
  const answer = <f64>debt
  const todo = replaceWithRing(entry, state, next, isSwap, freed)
  return todo == 0 ? besides(answer) : todo
}

@inline function besides(answer: f64): f64 {
  return held > 0 && !isSpending ? noAnswer(HELD, answer) : answer
}

/** Swaps the state, the ring word, and what has left the hold; or stages all. Returns as `replaceState` does. */
function replaceWithRing(entry: usize, state: u64, next: u64, isSwap: bool, freed: i64): f64 {
  const alone = staging == 0
  const descriptor = alone ? openDescriptor() : staging
  if (descriptor == 0) return RETRY
  stageIn(descriptor)
  let todo = isSwap ? replaceState(entry, state, next, stride != 0) : 0
  if (todo == 0) {
    addWord(descriptor, ringWordOf(entry), ringWord, freed > 0 ? nextVersion(ringWord) : ringWord)
    if (freed > 0) addWord(descriptor, sum, there, there - <u64>freed)
  }
  if (!alone) return todo
  stageIn(0)
  if (todo != 0) closeDescriptor(descriptor)
  else if (!commit(descriptor)) {
    add(base + CAS_RETRIES, 1)
    todo = RETRY
  }
  return todo
}
