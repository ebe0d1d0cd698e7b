import { CONCURRENCY, FIXED, LOG } from "../policy/encodings"
import { encoding, isRate, sinceBase } from "../policy/policy"
import { valueOf } from "../atomics/words"
import { MOST_NUMBER, next, put } from "./saved-numbers"
import * as log from "./saved-log"
import { readPermits, savePermits } from "./saved-permits"
import * as rate from "./saved-rate"
import * as window from "./saved-window"

// A key as whole numbers, for every store of state: a snapshot, a move to another limiter, a value elsewhere.
//
//   version, whether it has holds, and form | end of its ban, microseconds since the Unix epoch, or 0 | terms | numbers of the key | holds
//
// All times are microseconds since the Unix epoch, and the terms say under which numbers it counts. So a saved key knows no time
// base, epoch, table or encoding, and a key that was saved under other numbers of the algorithm loads as a change of policy would
// leave it: what is spent is at most the new burst. Hostile numbers are refused, or make no more than a key of the policy with a
// larger debt: every number is bounded before it is used.

export const VERSION: i64 = 1
const FORMS: i64 = 8
/** In the first number. */
const WITH_HOLDS: i64 = 1 << 6

/** Nothing but a ban. */
export const BAN_ALONE: i64 = 0
const RATE: i64 = 1
const FIXED_WINDOW: i64 = 2
const SLIDING_WINDOW: i64 = 3
const REQUESTS: i64 = 4
const PERMITS: i64 = 5


/** The form of keys under the policy in force. */
function formInForce(): i64 {
  if (isRate()) return RATE
  if (encoding == LOG) return REQUESTS
  if (encoding == CONCURRENCY) return PERMITS
  return encoding == FIXED ? FIXED_WINDOW : SLIDING_WINDOW
}

export function saveHead(isBanAlone: bool, bannedUs: i64, hasHolds: bool): void {
  put(VERSION * FORMS + (isBanAlone ? BAN_ALONE : formInForce()) + (hasHolds ? WITH_HOLDS : 0))
  put(bannedUs)
}

/** Puts what keys are saved by. */
export function saveTerms(): void {
  if (isRate()) rate.saveTerms()
  else if (encoding == LOG) log.saveTerms()
  else if (encoding != CONCURRENCY) window.saveTerms()
}

export function readTerms(): void {
  if (isRate()) rate.readTerms()
  else if (encoding == LOG) log.readTerms()
  else if (encoding != CONCURRENCY) window.readTerms()
}

/** Whether the terms last read are those in force. */
export function areOwnTerms(): bool {
  if (isRate()) return rate.areOwnTerms()
  if (encoding == LOG) return log.areOwnTerms()
  return encoding == CONCURRENCY || window.areOwnTerms()
}

/** Puts the numbers of a key with this state, under the policy in force and after the terms. */
export function saveState(entry: usize, state: u64, nowUs: i64): void {
  if (isRate()) rate.saveRate(valueOf(state))
  else if (encoding == LOG) log.saveLog(entry, valueOf(state), sinceBase(nowUs))
  else if (encoding == CONCURRENCY) savePermits(entry, state, sinceBase(nowUs))
  else window.saveWindow(entry, valueOf(state))
}

/** The end of the ban of the key last read. */
export let bannedUs: i64 = 0
/** Whether it has no state beside. */
export let isBanAlone: bool = false
/** Whether holds follow its numbers. */
export let hasHolds: bool = false

/** False: no saved key of this version and of the algorithm in force. */
export function readHeadOfKey(): bool {
  const head = next(MOST_NUMBER)
  const form = head & ~WITH_HOLDS
  hasHolds = head != form
  bannedUs = next(MOST_NUMBER)
  isBanAlone = form == VERSION * FORMS + BAN_ALONE
  if (hasHolds && (isBanAlone || encoding == CONCURRENCY)) return false
  return isBanAlone || form == VERSION * FORMS + formInForce()
}

/** Reads the numbers of a key, all of them. */
export function readState(nowUs: i64): void {
  if (isRate()) rate.readRate()
  else if (encoding == LOG) log.readLog(nowUs)
  else if (encoding == CONCURRENCY) readPermits()
  else window.readWindow()
}

/** The value of the key last read, under a policy in force whose keys are more than a time and counts: not of logs and permits. */
export function loadedValue(nowUs: i64): u64 {
  return isRate() ? rate.loadedRate(nowUs) : window.loadedWindow(nowUs)
}

/** Tokens that count at `nowUs` of the key last read, whose terms are those in force; not of permits. */
export function countedTokens(nowUs: i64): i64 {
  return isRate() || encoding == LOG ? spentTokens(nowUs) : window.countedAt(nowUs)
}

/** Tokens that the key last read has spent; after {@link loadedValue}. */
export function spentTokens(nowUs: i64): i64 {
  if (isRate()) return rate.spentAtRate(nowUs)
  return encoding == LOG ? log.spent : window.spent
}
