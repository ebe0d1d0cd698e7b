import { closeRecord, propose, publish } from "../policy/publish"
import { RECORD_EPOCH, RECORD_PREVIOUS, RECORD_SIZE } from "../memory-map"
import { epoch, refresh, isWithinRange, policyRecord } from "../policy/policy"
import { setField } from "../policy/policy-record"
import { finishMigration, migrateShare } from "./migrate"

/**
 * What came of a proposal. Another thread was quicker: count it out again, as keys may have their companions elsewhere by now, and what
 * was free for them may be in use, though it be the same places again.
 */
export const OVERTAKEN: i32 = 0
export const IN_FORCE: i32 = 1
/** Words of an older policy could not be carried over. */
export const GIVEN_UP: i32 = 2

/** Puts a proposed block, with all the numbers that JavaScript counts out, in force from `nowUs` on. */
export function update(record: usize, nowUs: i64, seenEpoch: u64): i32 {
  let outcome = OVERTAKEN
  while (outcome == OVERTAKEN) {
    if (!prepare()) outcome = GIVEN_UP
    else if (epoch != seenEpoch) break
    else if (publishNext(record, nowUs, false)) outcome = IN_FORCE
  }
  // One that nobody follows is needed by no state word.
  if (outcome != IN_FORCE) setField(record, RECORD_EPOCH, 0)
  closeRecord(record)
  return outcome
}

/** Brings this thread up to date with the policy in force, and the table as far as the next change needs it. */
export function prepare(): bool {
  let swept: u64
  do {
    refresh()
    swept = epoch
    if (!finishMigration(swept)) return false
    // Sweeping looks at the policy too, and may have met one whose share is not swept yet.
  } while (epoch != swept)
  return true
}

/** Moves the time base up when `nowUs` has come too far from it for a state word; true when the caller must start again. */
@inline export function rebased(nowUs: i64): bool {
  if (isWithinRange(nowUs)) return false
  rebase(nowUs)
  return true
}

function rebase(nowUs: i64): void {
  const record = propose()
  const prepared = prepare()
  // The same policy, ticket apart. Torn if another is published meanwhile, but then the swap fails.
  memory.copy(record + RECORD_PREVIOUS, policyRecord() + RECORD_PREVIOUS, RECORD_SIZE - RECORD_PREVIOUS)
  if (!prepared || isWithinRange(nowUs) || !publishNext(record, nowUs, true)) setField(record, RECORD_EPOCH, 0)
  closeRecord(record)
}

/** Publishes the block and carries the first share of the table over to it. */
function publishNext(record: usize, nowUs: i64, keepsDebt: bool): bool {
  const next = epoch + 1
  if (!publish(record, nowUs, keepsDebt)) return false
  migrateShare(next)
  return true
}
