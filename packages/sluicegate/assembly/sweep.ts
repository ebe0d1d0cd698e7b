import { load, raise, swap } from "./atomics"
import { backOff } from "./back-off"
import { blockOf, mostAfter, valueIn } from "./carry"
import { expel } from "./claim"
import { ENTRY_SIZE, LINES, LINE_SIZE, STATE, SWEPT } from "./memory-map"
import { CONCURRENCY, LOG, WIDE } from "./forms"
import { carriedLog, copiedPermits, liesElsewhere } from "./move"
import { epoch, form, refresh, stride } from "./policy"
import { carriedWithPrevious } from "./previous-count"
import { base } from "./section"
import { settled } from "./several"
import { lineAddress } from "./table"
import { NEVER_USED, fingerprintOf, isBlock, isMark, lagOf, withValue } from "./words"

// A state word has three bits for its epoch, so none may fall eight policies behind. Each change of policy therefore carries one
// sixth of the table over, and is not published before the share of the change before it is done, by whoever comes.

const SHARES: u64 = 6

/** Attempts to carry an entry over before it is given up. */
const MAX_ATTEMPTS: i32 = 32

/** False: it could not be finished, see {@link carryOver}. */
export function finishSweepOf(ofEpoch: u64): bool {
  return load(base + SWEPT) >= ofEpoch || sweepShareOf(ofEpoch)
}

export function sweepShareOf(ofEpoch: u64): bool {
  const lines = load(base + LINES)
  const share = ofEpoch % SHARES
  const last = <i32>((lines * (share + 1)) / SHARES)
  for (let line = <i32>((lines * share) / SHARES); line < last; line++) {
    if (!carryOverLine(lineAddress(line))) return false
  }
  raise(base + SWEPT, <i64>ofEpoch)
  return true
}

/** Carries the whole table over. True: every word of it was of one policy, the one in force or a later one, with no ticket or mark. */
export function sweepAll(): bool {
  const lines = <i32>load(base + LINES)
  for (let line = 0; line < lines; line++) {
    if (!carryOverLine(lineAddress(line))) return false
  }
  return true
}

/** Entries of a line are used one after another: behind one that was never used is none that was. */
function carryOverLine(line: usize): bool {
  if (load(line + STATE) == NEVER_USED) return true
  for (let entry = line; entry < line + LINE_SIZE; entry += ENTRY_SIZE) {
    if (!carryOver(entry)) return false
  }
  return true
}

/**
 * Carries an entry over to the policy in force, with its companions where they lie elsewhere now. False: others kept changing it, or
 * no descriptor was free to change several words together.
 */
export function carryOver(entry: usize): bool {
  for (let lost = 0; lost < MAX_ATTEMPTS; lost++) {
    if (lost > 0) backOff(lost)
    if (isCarriedOver(entry)) return true
  }
  return false
}

/** One attempt. */
function isCarriedOver(entry: usize): bool {
  const state = settled(entry + STATE)
  if (state == NEVER_USED) return true
  // Its holder may be about to write a state of an epoch long past. If he is alive, he starts again.
  if (isMark(state)) return expel(entry, state)
  const identity = load(entry)
  refresh()
  const lag = lagOf(state, epoch)
  if (lag == 0) return true
  const ofBlock = isBlock(fingerprintOf(identity))
  const from = stride == 0 || ofBlock ? <usize>0 : blockOf(lag)
  if (from != 0 && form == LOG) return carriedLog(entry, state, from, lag)
  if (from != 0 && form == CONCURRENCY && liesElsewhere(from) && !copiedPermits(entry, state, from)) return false
  const next = withValue(state, epoch, valueIn(state, lag, entry, ofBlock))
  return form == WIDE && !ofBlock ? carriedWithPrevious(entry, state, next, mostAfter(lag)) : swap(entry + STATE, state, next)
}
