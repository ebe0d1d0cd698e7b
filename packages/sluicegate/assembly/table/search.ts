import { ENTRY_SIZE, LINE_SIZE, STATE } from "../memory-map"
import { setChoice, setSeenState } from "../results"
import { load } from "../atomics/atomics"
import { resolved } from "../atomics/kcas"
import { NEVER_USED, NO_KEY, fingerprintOf, isBan, isHeld, isMark, isReference, lagOf, markFingerprint } from "../atomics/words"
import { capacity, epoch, isOfCalls, isRate, refresh, sinceBase, stride, unitsPerToken } from "../policy/policy"
import { owedBy, yieldsPlace } from "../algorithms/call-rate"
import { debtOf, untilFree, untilNew } from "../algorithms/key-state"
import { lastEndUs, readHoldRing } from "../algorithms/hold-ring"
import { migratedValue } from "../algorithms/migrate-value"
import { passes } from "../algorithms/verbs"
import { denyWhenFull, lineAddress, lineAfter, range } from "./layout"
import { migrate } from "./migrate"
import { letGo } from "./rings"

/**
 * The entry in which the key lives, or 0.
 *
 * The state is read before the identity. If an entry changed hands between the two, a state read *second* could be the new
 * owner's, and the swap that follows would charge the new owner. Read first, it is the old owner's, and the swap fails.
 */
export function find(fingerprint: u64, home: i32): usize {
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      const state = load(entry + STATE)
      if (state == NEVER_USED) return 0
      if (fingerprintOf(load(entry)) == fingerprint) {
        if (!isMark(state)) {
          setSeenState(state)
          return entry
        }
        if (isReference(state)) {
          resolved(entry + STATE)
          entry -= ENTRY_SIZE
        }
      }
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return 0
}

/** What `choose` found. */
export const NOTHING: i32 = 0
export const FREE: i32 = 1
export const IDLE: i32 = 2
export const MARKED: i32 = 3
export const LIVE: i32 = 4
/** Another thread is inserting the very same key. */
export const RIVAL: i32 = 5
/** The very same key has been inserted since it was missed. */
export const RESIDENT: i32 = 6

/**
 * A place for a new key, best first: a never-used or idle entry, a mark (which may be abandoned), the entry with the least debt
 * among those where a take of 1 would pass now.
 */
export function choose(fingerprint: u64, home: i32, nowUs: i64): i32 {
  let kind = NOTHING
  let least: i64 = i64.MAX_VALUE
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      const state = resolved(entry + STATE)
      if (state == NEVER_USED) return pick(FREE, entry, state, 0)
      if (isMark(state)) {
        if (markFingerprint(state) == fingerprint) return pick(RIVAL, entry, state, 0)
        if (kind != MARKED) kind = pick(MARKED, entry, state, 0)
        continue
      }
      const identity = load(entry)
      // If it were judged like any other key, it could be evicted for itself, and its charge with it.
      if (fingerprintOf(identity) == fingerprint) return pick(RESIDENT, entry, state, 0)
      refresh()
      if (isOfOldPolicy(entry, state, identity)) {
        // A key that cannot be read is not evicted.
        if (migrate(entry)) entry -= ENTRY_SIZE
        continue
      }
      if (fingerprintOf(identity) == NO_KEY) return pick(FREE, entry, state, 0)
      // Nor is one with open work.
      if (isHeld(state)) {
        if (letGo(entry, state, nowUs)) entry -= ENTRY_SIZE
        continue
      }
      const debt = residentDebt(entry, fingerprintOf(identity), state, nowUs)
      if (debt <= 0 || (isOfCalls() && owedBy(debt) == 0)) return pick(IDLE, entry, state, 0)
      if (kind == MARKED || debt >= least) continue
      const yields = !denyWhenFull && !isBan(fingerprintOf(identity)) && mayYield(debt)
      if (yields) {
        least = debt
        kind = pick(LIVE, entry, state, debt)
      }
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return kind
}

/** Whether a take of one token would pass. */
@inline function mayYield(debt: i64): bool {
  return isOfCalls() ? yieldsPlace(debt) : passes(debt, unitsPerToken, capacity)
}

@inline function pick(kind: i32, entry: usize, state: u64, debt: i64): i32 {
  setChoice(entry, state, debt)
  return kind
}

/** Whether the entry is more than a word, and must be migrated from an older policy before it can be read. */
@inline function isOfOldPolicy(entry: usize, state: u64, identity: u64): bool {
  return stride != 0 && lagOf(state, epoch) != 0 && !isBan(fingerprintOf(identity))
}

/** The debt of a key now. The policy was read after the key's state, so the state is never of a newer one. */
export function residentDebt(entry: usize, fingerprint: u64, state: u64, nowUs: i64): i64 {
  const ofBan = isBan(fingerprint)
  return debtOf(ofBan, entry, migratedValue(state, lagOf(state, epoch), entry, ofBan), sinceBase(nowUs))
}

/** Microseconds until the first key in the range is idle, or, unless new keys are denied then, may be evicted. At least 1. */
export function roomAfterUs(fingerprint: u64, home: i32, nowUs: i64, perUs: i64): i64 {
  let least: i64 = i64.MAX_VALUE
  let line = home
  for (let probe = 0; probe < range; probe++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) {
      const state = resolved(entry + STATE)
      if (state == NEVER_USED || isMark(state)) return 1
      const identity = load(entry)
      refresh()
      if (fingerprintOf(identity) == NO_KEY || isOfOldPolicy(entry, state, identity)) return 1
      if (isHeld(state)) {
        readHoldRing(entry, nowUs)
        least = min<i64>(least, lastEndUs - nowUs)
        continue
      }
      const debt = residentDebt(entry, fingerprintOf(identity), state, nowUs)
      least = min<i64>(least, roomIn(debt, isBan(fingerprintOf(identity)), perUs))
    }
    line = lineAfter(line, probe, fingerprint, home)
  }
  return max<i64>(least, 1)
}

/** Microseconds until a key with this debt, the one last read, is idle or may be evicted. */
function roomIn(debt: i64, ofBan: bool, perUs: i64): i64 {
  if (ofBan) return debt
  if (!isRate()) return denyWhenFull ? untilNew() : untilFree(1)
  const untilRoom = isOfCalls() ? owedBy(debt) : denyWhenFull ? debt : debt + unitsPerToken - capacity
  return (untilRoom + perUs - 1) / perUs
}
