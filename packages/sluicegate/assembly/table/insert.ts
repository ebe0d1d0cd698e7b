import { EXPLORED } from "../build-flags"
import { EVICTIONS, GROWN, STATE, TAKEOVER_HIGH, base } from "../memory-map"
import { AGAIN, LATE, RETRY, chosen, debt, chosenDebt, claimedIdentity, noAnswer, seenState, setEvictedDebt } from "../results"
import { add, load, raise, swap } from "../atomics/atomics"
import { staging } from "../atomics/kcas"
import { claimMark, isBan, stateWord } from "../atomics/words"
import { CONCURRENCY } from "../policy/encodings"
import { encoding, epoch, refresh, stride, sinceBase, unitsPerUs } from "../policy/policy"
import { stepped, newValue } from "../algorithms/key-state"
import { weight, boundOf } from "../algorithms/rate"
import { INSERT, PENALIZE, RESERVE, TAKE } from "../algorithms/verbs"
import { release, revoke, completeClaim, resetExtension } from "./claim"
import { partOf } from "./layout"
import { overflow, refused } from "./overflow"
import { FREE, LIVE, MARKED, NOTHING, RESIDENT, RIVAL, choose, roomAfterUs } from "./search"
import { rebased } from "./update"

// How a key comes into the table, already charged.

/** Attempts for which a mark is waited for before it counts as abandoned. */
const PATIENCE: i32 = EXPLORED ? 1 : 8

/** A key that lives nowhere: it owes nothing, but counts from the latest time by which any key was forgotten. */
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
    // Before the mark: whoever misses the key in the table finds the time by which it was forgotten.
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
  // After the rescan: a key that lived elsewhere in the range until then was forgotten by a time that is published now.
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

/** What a key does first that wants `verb` done: where several words have to change together, it comes in and does no more. */
@inline function verbOnEntry(verb: i32, fingerprint: u64): i32 {
  const comesFirst = (encoding == CONCURRENCY || staging != 0) && !isBan(fingerprint)
  return comesFirst && (verb == TAKE || verb == RESERVE || verb == PENALIZE) ? INSERT : verb
}

/** Whether the newcomer moves in, and with which value. */
let inserts: bool = false
let firstValue: u64 = 0

/** The debt of a newcomer after the verb. */
function stepNewcomer(verb: i32, fingerprint: u64, tokens: i64, nowUs: i64, bound: i64): i64 {
  const ofBan = isBan(fingerprint)
  const fresh = newValue(ofBan, nowUs, <i64>load(base + TAKEOVER_HIGH))
  const amount = weight(verb, tokens)
  firstValue = stepped(verb, ofBan, 0, fresh, sinceBase(nowUs), amount, boundOf(verb, ofBan, tokens, bound))
  inserts = firstValue != fresh || verb == INSERT
  return debt
}

function notInserted(verb: i32, debt: i64): f64 {
  if (verb != TAKE && verb != RESERVE) return <f64>debt
  return debt > 0 ? noAnswer(LATE, <f64>debt) : -1.0 - <f64>debt
}
