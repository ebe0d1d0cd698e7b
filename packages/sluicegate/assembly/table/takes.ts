import { CAS_RETRIES, STATE, base } from "../memory-map"
import { debt, setDebt } from "../results"
import { add, load, swap } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { stageIn } from "../atomics/kcas"
import { fingerprintOf, valueOf, withValue } from "../atomics/words"
import { burst, capacity, epoch, isOrdinary, mostAheadUs, refresh, sinceBase, stride, unitsPerToken } from "../policy/policy"
import { called, setInterval } from "../algorithms/call-rate"
import { isAhead, isChange, stepped } from "../algorithms/key-state"
import { debtAt, valueAt } from "../algorithms/rate"
import { CALL, RESERVE, TAKE } from "../algorithms/verbs"
import { mayBeBanned } from "./ban-filter"
import { unlessBanned } from "./bans"
import { change } from "./cas-loop"
import { lineAddress } from "./layout"

// Takes, the frequent ones by fast paths before the loop.

/**
 * The ordinary take of a bucket or GCRA: the first turn of the loop for a key in the first entry of its line, while no
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

/** A take of any encoding, without a fast path. */
export function takeUnlessBanned(fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  return unlessBanned(TAKE, fingerprint, home, tokens, nowUs, 0)
}

/** A take that may lie in the future, by at most `mostUs`. */
export function reserve(fingerprint: u64, home: i32, tokens: i64, nowUs: i64, mostUs: i64): f64 {
  refresh()
  const ahead = min<i64>(mostUs, mostAheadUs())
  return unlessBanned(RESERVE, fingerprint, home, tokens, nowUs, ahead)
}

/** Records the take in a descriptor instead of making it. The answer holds if the descriptor commits. */
export function stage(descriptor: usize, fingerprint: u64, home: i32, tokens: i64, nowUs: i64): f64 {
  stageIn(descriptor)
  const answer = takeUnlessBanned(fingerprint, home, tokens, nowUs)
  stageIn(0)
  return answer
}
