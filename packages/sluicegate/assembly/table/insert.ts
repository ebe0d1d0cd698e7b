import { EXPLORED } from "../build-flags"
import { EVICTIONS, GROWN, STATE, TAKEOVER_HIGH, base } from "../memory-map"
import { AGAIN, LATE, RETRY, chosen, chosenDebt, claimedIdentity, debt, noAnswer, seenState, setEvictedDebt } from "../results"
import { add, load, raise, swap } from "../atomics/atomics"
import { staging } from "../atomics/kcas"
import { claimMark, isBan, stateWord } from "../atomics/words"
import { CONCURRENCY } from "../policy/encodings"
import { encoding, epoch, refresh, sinceBase, stride, unitsPerUs } from "../policy/policy"
import { newValue, stepped } from "../algorithms/key-state"
import { boundOf, weight } from "../algorithms/rate"
import { CALL, INSERT, PENALIZE, RESERVE, TAKE } from "../algorithms/verbs"
import { completeClaim, release, resetExtension, revoke } from "./claim"
import { partOf } from "./layout"
import { overflow, refused } from "./overflow"
import { FREE, LIVE, MARKED, NOTHING, RESIDENT, RIVAL, choose, roomAfterUs } from "./search"
import { rebased } from "./update"

// How a key enters the table, already charged.

/** Attempts before a mark counts as abandoned. */
const PATIENCE: i32 = EXPLORED ? 1 : 8

/** Inserts a key that is not in the table. It owes nothing, but counts from the latest time by which any key was evicted. */
export function insert(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64, lost: i32): f64 {
  refresh()
  if (rebased(nowUs)) return AGAIN
  const entering = verbOnEntry(verb, fingerprint)
  const answer = stepNewcomer(entering, fingerprint, tokens, nowUs, bound)
  if (!inserts) return notInserted(verb, answer)

  const kind = choose(fingerprint, home, nowUs)
  if (kind == RESIDENT) return AGAIN
  if (kind == NOTHING) return withoutRoom(verb, fingerprint, home, tokens, nowUs)
  const entry = chosen
  const seen = seenState
  const owed = chosenDebt
  if (kind == RIVAL || kind == MARKED) {
    if (lost < PATIENCE) return RETRY
    if (kind == RIVAL) {
      revoke(entry, seen)
      return RETRY
    }
  } else if (kind != FREE) {
    // Before the mark: a thread that misses the key in the table finds the time by which it was evicted.
    raise(base + TAKEOVER_HIGH, nowUs)
  }
  const part = partOf(entry)
  if (part > 0) raise(base + GROWN, part)
  const mark = claimMark(fingerprint, load(entry), seen)
  if (!swap(entry + STATE, seen, mark)) return RETRY
  if (kind == LIVE) {
    add(base + EVICTIONS, 1)
    setEvictedDebt(owed)
  }
  if (!completeClaim(entry, mark, fingerprint, home)) return RETRY
  return firstState(verb, fingerprint, entry, mark, tokens, nowUs, bound)
}

function withoutRoom(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  const roomUs = roomAfterUs(fingerprint, home, nowUs, unitsPerUs)
  return verb == TAKE || verb == RESERVE ? overflow(fingerprint, tokens, nowUs, roomUs) : refused(roomUs)
}

function firstState(verb: i32, fingerprint: u64, entry: usize, mark: u64, tokens: i64, nowUs: i64, bound: i64): f64 {
  const identity = claimedIdentity
  // After the rescan: if the key lived elsewhere in the range until then, the time of its eviction is published by now.
  refresh()
  const entering = verbOnEntry(verb, fingerprint)
  const answer = stepNewcomer(entering, fingerprint, tokens, nowUs, bound)
  if (!inserts || rebased(nowUs)) {
    release(entry, mark)
    return inserts ? RETRY : notInserted(verb, answer)
  }
  if (stride != 0 && !isBan(fingerprint) && !resetExtension(entry, mark, identity)) return RETRY
  if (!swap(entry + STATE, mark, stateWord(epoch, identity, firstValue))) return RETRY
  return entering == INSERT ? AGAIN : <f64>answer
}

/** The first step of a key for `verb`. Where several words have to change together, the key is inserted and no more. */
@inline function verbOnEntry(verb: i32, fingerprint: u64): i32 {
  const comesFirst = (encoding == CONCURRENCY || staging != 0) && !isBan(fingerprint)
  return comesFirst && (verb == TAKE || verb == RESERVE || verb == PENALIZE) ? INSERT : verb
}

/** Whether the new key is inserted, and with which value. */
let inserts: bool = false
let firstValue: u64 = 0

/** The debt of a new key after the verb. */
function stepNewcomer(verb: i32, fingerprint: u64, tokens: i64, nowUs: i64, bound: i64): i64 {
  const ofBan = isBan(fingerprint)
  const fresh = newValue(ofBan, nowUs, <i64>load(base + TAKEOVER_HIGH))
  const amount = weight(verb, tokens)
  firstValue = stepped(verb, ofBan, 0, fresh, sinceBase(nowUs), amount, boundOf(verb, ofBan, tokens, bound))
  inserts = firstValue != fresh || verb == INSERT
  return debt
}

function notInserted(verb: i32, debt: i64): f64 {
  if (verb == CALL) return -1.0 - <f64>debt
  if (verb != TAKE && verb != RESERVE) return <f64>debt
  return debt > 0 ? noAnswer(LATE, <f64>debt) : -1.0 - <f64>debt
}
