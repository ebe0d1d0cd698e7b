import { AGAIN, LATE, RETRY, unanswered } from "./answers"
import { add, load, raise, swap } from "./atomics"
import { EXPLORED } from "./build-flags"
import { claimedIdentity, cleaned, expel, release, settle } from "./claim"
import { CONCURRENCY } from "./forms"
import { EVICTIONS, GROWN, STATE, TAKEOVER_HIGH } from "./memory-map"
import { overflow, refused } from "./overflow"
import { epoch, form, refresh, sinceBase, stride, unitsPerUs } from "./policy"
import { staging } from "./replace"
import { base } from "./section"
import { debt, newValue, stepped } from "./standing"
import { FREE, LIVE, MARKED, NOTHING, RESIDENT, RIVAL, choose, chosen, chosenDebt, partOf, roomAfterUs, seenState } from "./table"
import { rebased } from "./update"
import { ENTER, PENALIZE, RESERVE, TAKE } from "./verbs"
import { boundOf, weight } from "./weight"
import { claimMark, isBlock, stateWord } from "./words"

// How a key comes into the table, already charged.

/** Attempts for which a mark is waited for before it counts as abandoned. */
const PATIENCE: i32 = EXPLORED ? 1 : 8

/** What the key forgotten by the last call owed, in units; -1 when none was. */
export let forgottenDebt: i64 = -1

export function forgetNothing(): void {
  forgottenDebt = -1
}

/** A key that lives nowhere: it owes nothing, but counts from the latest time by which any key was forgotten. */
export function moveIn(verb: i32, fingerprint: u64, home: i32, tokens: i64, nowUs: i64, bound: i64, lost: i32): f64 {
  refresh()
  if (rebased(nowUs)) return AGAIN
  const entering = arrival(verb, fingerprint)
  const answer = newcomer(entering, fingerprint, tokens, nowUs, bound)
  if (!moves) return unmoved(verb, answer)

  const kind = choose(fingerprint, home, nowUs)
  if (kind == RESIDENT) return AGAIN
  if (kind == NOTHING) return withoutRoom(verb, fingerprint, home, tokens, nowUs)
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
  const part = partOf(entry)
  if (part > 0) raise(base + GROWN, part)
  const mark = claimMark(fingerprint, load(entry), seen)
  if (!swap(entry + STATE, seen, mark)) return RETRY
  if (kind == LIVE) {
    add(base + EVICTIONS, 1)
    forgottenDebt = owed
  }
  if (!settle(entry, mark, fingerprint, home)) return RETRY
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
