import { beginKey } from "../host"
import { LONG_AGO, STATE, TAKEOVER_HIGH, base } from "../memory-map"
import { EVICTED, noAnswer, seenState, why } from "../results"
import { load, store, swap } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { resolved, swapBoth } from "../atomics/kcas"
import { NEVER_USED, isHeld, lagOf, ownerOf, valueOf, withValue } from "../atomics/words"
import { CONCURRENCY, LOG, WIDE } from "../policy/encodings"
import { extensionOf } from "../policy/extension"
import { burst, encoding, epoch, isRate, refresh, sinceBase, unitsPerToken } from "../policy/policy"
import { readHoldRing, ringWord } from "../algorithms/hold-ring"
import { debtOf, isUnchanged, newValue } from "../algorithms/key-state"
import { held, readRing } from "../algorithms/log-ring"
import { wordOf } from "../algorithms/previous-count"
import * as holds from "../algorithms/saved-holds"
import { loadLog } from "../algorithms/saved-log"
import { beginReading, endReading, sound } from "../algorithms/saved-numbers"
import * as permits from "../algorithms/saved-permits"
import {
  areOwnTerms, bannedUs, countedTokens, hasHolds, isBanAlone, loadedValue, readHeadOfKey, readState, readTerms, saveHead, saveState, saveTerms, spentTokens,
} from "../algorithms/saved-state"
import { before, windowBefore } from "../algorithms/saved-window"
import { INSERT, PENALIZE, RESET } from "../algorithms/verbs"
import * as bans from "./bans"
import { MAX_ATTEMPTS, change, givenUp } from "./cas-loop"
import { evict } from "./claim"
import { holdCarried } from "./holds"
import { migrate } from "./migrate"
import { evictWithRing } from "./rings"
import { find } from "./search"
import { rebased } from "./update"

// A key leaves a table, or enters it, as the numbers of saved-state.ts.
//
// What is saved is the key at one moment: the state word is compared after all else was read. A key that is taken out is evicted by
// a swap from that very state, so that of several threads one takes it, and every charge is either in the numbers or made after them.
//
// A key that is loaded enters as any new key does, without a charge, and then gets its state in one swap; permits, each its own. If it
// is in the table already and owes something, the two counts are added, up to the burst.

/** Puts the numbers of a key. Returns 1, or 0 for a key that is not in the table and not banned; NaN without an answer. */
export function save(fingerprint: u64, home: i32, nowUs: i64, takesOut: bool): f64 {
  const left = bans.banLeft(fingerprint, home, nowUs)
  if (left != left) return left
  const until = left > 0 ? nowUs + <i64>left : 0
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) backOff(attempt)
    beginKey()
    const entry = find(fingerprint, home)
    if (entry == 0) {
      if (until == 0) return 0
      saveHead(true, until, false)
    } else {
      const state = seenState
      refresh()
      if (rebased(nowUs)) continue
      if (lagOf(state, epoch) != 0) {
        if (!migrate(entry)) break
        continue
      }
      const hasRing = isHeld(state)
      const withHolds = hasRing && holds.hasHolds(entry, nowUs)
      saveHead(false, until, withHolds)
      saveTerms()
      saveState(entry, state, nowUs)
      if (withHolds) holds.saveHolds()
      if (hasRing ? !holds.areUnchanged(entry, state) : load(entry + STATE) != state) continue
      if (!isUnchanged(entry, false)) continue
      if (takesOut && !(hasRing ? evictWithRing(entry, state) : evict(entry, state))) continue
    }
    return takesOut && until != 0 && bans.ban(fingerprint, home, 0, nowUs) != 0 ? givenUp() : 1
  }
  return givenUp()
}

/** Forgets the key of a table that holds no other: the next one may come at an earlier time. */
export function clear(fingerprint: u64, home: i32, nowUs: i64): void {
  const entry = find(fingerprint, home)
  if (entry != 0) {
    const state = seenState
    if (isHeld(state)) {
      readHoldRing(entry, nowUs)
      evictWithRing(entry, state)
    } else evict(entry, state)
  }
  if (bans.banLeft(fingerprint, home, nowUs) != 0) bans.ban(fingerprint, home, 0, nowUs)
  store(base + TAKEOVER_HIGH, <u64>LONG_AGO)
}

let noted: u64 = 0
let notedRing: u64 = 0

/** Notes the key as it is now. */
export function note(fingerprint: u64, home: i32): void {
  noted = stateOf(fingerprint, home)
  notedRing = ringOfKey
}

/** Whether the key is still as noted: but for a ring, nothing beside a state word changes without it. */
export function isAsNoted(fingerprint: u64, home: i32): bool {
  return stateOf(fingerprint, home) == noted && ringOfKey == notedRing
}

let ringOfKey: u64 = 0

/** The state word of the key; sets its ring word. */
function stateOf(fingerprint: u64, home: i32): u64 {
  ringOfKey = 0
  const entry = find(fingerprint, home)
  if (entry == 0) return NEVER_USED
  const state = seenState
  if (isHeld(state)) {
    readHoldRing(entry, 0)
    ringOfKey = ringWord
  }
  return state
}

/** Returns 1 when the key is loaded, 2 when under other numbers than it was saved, 0 when it is none of the policy's algorithm; NaN without an answer. */
export function loadSaved(fingerprint: u64, home: i32, nowUs: i64): f64 {
  refresh()
  beginKey()
  beginReading()
  if (!readHeadOfKey()) return 0
  if (!isBanAlone) {
    readTerms()
    readState(nowUs)
    if (hasHolds) holds.readHolds(nowUs)
  }
  endReading()
  if (!sound) return 0
  if (bannedUs > nowUs) {
    const left = bans.ban(fingerprint, home, bannedUs - nowUs, nowUs)
    if (left != left && why != EVICTED) return left
  }
  if (isBanAlone) return 1
  const isOwn = areOwnTerms()
  const answer = encoding == CONCURRENCY ? loadPermits(fingerprint, home, nowUs) : loadState(fingerprint, home, nowUs)
  const loaded = answer == 1 && hasHolds ? loadHolds(fingerprint, home, nowUs) : answer
  return loaded == 1 && !isOwn ? 2 : loaded
}

/** Reads the numbers of a key up to its holds: the tokens that it has spent, under the policy in force, which saved it. Not of permits. */
export function readSpent(nowUs: i64): i64 {
  refresh()
  beginReading()
  if (!readHeadOfKey() || isBanAlone) return 0
  readTerms()
  readState(nowUs)
  return countedTokens(nowUs)
}

/** Adds what is held to what is held here. */
function loadHolds(fingerprint: u64, home: i32, nowUs: i64): f64 {
  beginKey()
  beginReading()
  readHeadOfKey()
  readTerms()
  readState(nowUs)
  for (let left = holds.readCount(); left > 0; left--) {
    holds.readHold()
    if (holds.endUs <= nowUs || holds.tokens == 0) continue
    const answer = holdCarried(fingerprint, home, holds.tokens, holds.endUs, nowUs)
    if (answer != answer) return answer
  }
  return 1
}

/** The entry of the key, inserted if need be, with a state of the policy in force; 0: see {@link unanswered}, AGAIN if that is 0. */
function entryOf(fingerprint: u64, home: i32, nowUs: i64): usize {
  unanswered = 0
  const answer = change(INSERT, fingerprint, home, 0, nowUs, 0)
  if (answer != answer && why != EVICTED) {
    unanswered = answer
    return 0
  }
  const entry = find(fingerprint, home)
  if (entry == 0) return 0
  const state = seenState
  refresh()
  if (rebased(nowUs)) return 0
  if (lagOf(state, epoch) != 0) {
    migrate(entry)
    return 0
  }
  seen = state
  return entry
}

let unanswered: f64 = 0
let seen: u64 = 0

function loadState(fingerprint: u64, home: i32, nowUs: i64): f64 {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt > 0) backOff(attempt)
    const entry = entryOf(fingerprint, home, nowUs)
    if (entry == 0) {
      if (unanswered != unanswered) return unanswered
      continue
    }
    const state = seen
    const us = sinceBase(nowUs)
    const owed = debtOf(false, entry, valueOf(state), us)
    const isNew = valueOf(state) == newValue(false, nowUs, <i64>load(base + TAKEOVER_HIGH))
    // Again: the policy may be another one by now.
    beginKey()
    beginReading()
    if (!readHeadOfKey()) return 0
    readTerms()
    readState(nowUs)
    if (!sound) return 0
    const value = encoding == LOG ? <u64>0 : loadedValue(nowUs)
    if (owed > 0 && !isNew) {
      const spentHere = isRate() ? (owed + unitsPerToken - 1) / unitsPerToken : owed
      const more = min<i64>(spentTokens(nowUs), burst - spentHere)
      if (more <= 0) return 1
      const answer = change(PENALIZE, fingerprint, home, more, nowUs, 0)
      return answer != answer && why != EVICTED ? answer : 1
    }
    if (isReplaced(entry, state, value, nowUs, fingerprint, home)) return 1
  }
  return givenUp()
}

function isReplaced(entry: usize, state: u64, value: u64, nowUs: i64, fingerprint: u64, home: i32): bool {
  if (encoding == LOG) {
    readRing(entry)
    if (held > 0) {
      // What has expired takes up slots.
      change(RESET, fingerprint, home, 0, nowUs, 0)
      return false
    }
    beginKey()
    beginReading()
    readHeadOfKey()
    readTerms()
    return loadLog(entry, state, nowUs)
  }
  const next = withValue(state, epoch, value)
  if (encoding != WIDE) return swap(entry + STATE, state, next)
  const word = resolved(extensionOf(entry))
  if (load(entry + STATE) != state) return false
  return swapBoth(entry + STATE, state, next, extensionOf(entry), word, wordOf(windowBefore, before))
}

/** Evictions before the permits are loaded under another owner: then they expire, and cannot be released. */
const MOST_OWNERS: i32 = 16

function loadPermits(fingerprint: u64, home: i32, nowUs: i64): f64 {
  let loaded: i64 = 0
  let goesOn = false
  let owners = 0
  let lost = 0
  const all = permits.count
  while (!goesOn || loaded < all) {
    if (lost > 0) backOff(lost)
    if (lost++ > MAX_ATTEMPTS) return givenUp()
    const entry = entryOf(fingerprint, home, nowUs)
    if (entry == 0) {
      if (unanswered != unanswered) return unanswered
      continue
    }
    const state = seen
    const us = sinceBase(nowUs)
    if (!goesOn && debtOf(false, entry, valueOf(state), us) == 0) {
      if (owners < MOST_OWNERS && ownerOf(state) != permits.owner) {
        // Each key of an entry has the next owner, and so has one that was evicted.
        owners++
        if (evict(entry, state)) lost = 0
        continue
      }
      goesOn = true
      if (swap(entry + STATE, state, withValue(state, epoch, permits.continued(valueOf(state), nowUs)))) lost = 0
      continue
    }
    goesOn = true
    beginKey()
    beginReading()
    readHeadOfKey()
    permits.skipPermits(loaded)
    let word = state
    while (loaded < all) {
      if (!permits.loadPermit(entry, word, us, nowUs)) break
      loaded++
      lost = 0
      word = permits.after
    }
  }
  return 1
}
