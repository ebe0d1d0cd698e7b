import { load, raise, swap } from "./atomics"
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

export function finishSweepOf(ofEpoch: u64): void {
  if (load(base + SWEPT) < ofEpoch) sweepShareOf(ofEpoch)
}

export function sweepShareOf(ofEpoch: u64): void {
  const lines = load(base + LINES)
  const share = ofEpoch % SHARES
  const last = <i32>((lines * (share + 1)) / SHARES)
  for (let line = <i32>((lines * share) / SHARES); line < last; line++) {
    const end = lineAddress(line) + LINE_SIZE
    for (let entry = lineAddress(line); entry < end; entry += ENTRY_SIZE) carryOver(entry)
  }
  raise(base + SWEPT, <i64>ofEpoch)
}

/** Carries the whole table over, so that every word of it is of the policy in force and no ticket or mark stands. */
export function sweepAll(): void {
  const end = lineAddress(<i32>load(base + LINES))
  for (let entry = lineAddress(0); entry < end; entry += ENTRY_SIZE) carryOver(entry)
}

/** Carries an entry over to the policy in force, with its companions where they lie elsewhere now. */
export function carryOver(entry: usize): void {
  while (true) {
    const state = settled(entry + STATE)
    if (state == NEVER_USED) return
    if (isMark(state)) {
      // Its holder may be about to write a state of an epoch long past. If he is alive, he starts again.
      if (expel(entry, state)) return
      continue
    }
    const identity = load(entry)
    refresh()
    const lag = lagOf(state, epoch)
    if (lag == 0) return
    const ofBlock = isBlock(fingerprintOf(identity))
    const from = stride == 0 || ofBlock ? <usize>0 : blockOf(lag)
    if (from != 0 && form == LOG) {
      if (carriedLog(entry, state, from, lag)) return
      continue
    }
    if (from != 0 && form == CONCURRENCY && liesElsewhere(from) && !copiedPermits(entry, state, from)) continue
    const next = withValue(state, epoch, valueIn(state, lag, entry, ofBlock))
    const isWide = form == WIDE && !ofBlock
    if (isWide ? carriedWithPrevious(entry, state, next, mostAfter(lag)) : swap(entry + STATE, state, next)) return
  }
}
