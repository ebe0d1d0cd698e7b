import { ENTRY_SIZE, LINES, LINE_SIZE, MIGRATED, STATE, base } from "../memory-map"
import { load, raise, swap } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { resolved } from "../atomics/kcas"
import { NEVER_USED, fingerprintOf, isBan, isMark, lagOf, withValue } from "../atomics/words"
import { CONCURRENCY, LOG, WIDE } from "../policy/encodings"
import { extensionMoved } from "../policy/extension"
import { encoding, epoch, refresh, stride } from "../policy/policy"
import { migrateLog } from "../algorithms/migrate-log"
import { countLimitAfter, migratedValue, recordOf } from "../algorithms/migrate-value"
import { migratePermits } from "../algorithms/permits"
import { swapWithPrevious } from "../algorithms/previous-count"
import { revoke } from "./claim"
import { lineAddress } from "./layout"

// Migrates entries to the policy in force. A state word has three bits for its epoch, so none may fall eight policies behind. Each
// change of policy therefore migrates one sixth of the table. The next change is published only after that share is done, by any
// thread.

const SHARES: u64 = 6

/** Attempts to migrate an entry before it is given up. */
const MAX_ATTEMPTS: i32 = 32

/** False: the share could not be finished, see {@link migrate}. */
export function finishMigration(ofEpoch: u64): bool {
  return load(base + MIGRATED) >= ofEpoch || migrateShare(ofEpoch)
}

export function migrateShare(ofEpoch: u64): bool {
  const lines = load(base + LINES)
  const share = ofEpoch % SHARES
  const last = <i32>((lines * (share + 1)) / SHARES)
  for (let line = <i32>((lines * share) / SHARES); line < last; line++) {
    if (!migrateLine(lineAddress(line))) return false
  }
  raise(base + MIGRATED, <i64>ofEpoch)
  return true
}

/** Migrates the whole table. True: every word was of one policy, the one in force or a later one, with no reference or mark. */
export function migrateAll(): bool {
  const lines = <i32>load(base + LINES)
  for (let line = 0; line < lines; line++) {
    if (!migrateLine(lineAddress(line))) return false
  }
  return true
}

/** Entries of a line are used in order: behind a never-used entry all are unused. */
function migrateLine(line: usize): bool {
  if (load(line + STATE) == NEVER_USED) return true
  for (let entry = line; entry < line + LINE_SIZE; entry += ENTRY_SIZE) {
    if (!migrate(entry)) return false
  }
  return true
}

/**
 * Migrates an entry to the policy in force, with its extension if that has another place now. False: other threads kept changing
 * it, or no descriptor was free for a multi-word swap.
 */
export function migrate(entry: usize): bool {
  for (let lost = 0; lost < MAX_ATTEMPTS; lost++) {
    if (lost > 0) backOff(lost)
    if (tryMigrate(entry)) return true
  }
  return false
}

/** One attempt. */
function tryMigrate(entry: usize): bool {
  const state = resolved(entry + STATE)
  if (state == NEVER_USED) return true
  // Its holder may be about to write a state of an epoch long past. If the holder is alive, it starts again.
  if (isMark(state)) return revoke(entry, state)
  const identity = load(entry)
  refresh()
  const lag = lagOf(state, epoch)
  if (lag == 0) return true
  const ofBan = isBan(fingerprintOf(identity))
  const from = stride == 0 || ofBan ? <usize>0 : recordOf(lag)
  if (from != 0 && encoding == LOG) return migrateLog(entry, state, from, lag)
  if (from != 0 && encoding == CONCURRENCY && extensionMoved(from) && !migratePermits(entry, state, from)) return false
  const next = withValue(state, epoch, migratedValue(state, lag, entry, ofBan))
  return encoding == WIDE && !ofBan ? swapWithPrevious(entry, state, next, countLimitAfter(lag)) : swap(entry + STATE, state, next)
}
