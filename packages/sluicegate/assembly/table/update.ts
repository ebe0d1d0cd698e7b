import { raise } from "../atomics/atomics"
import { MIGRATED, RECORD_EPOCH, RECORD_PREVIOUS, RECORD_SIZE, base } from "../memory-map"
import { epoch, isWithinRange, policyRecord, refresh } from "../policy/policy"
import { setField } from "../policy/policy-record"
import { closeRecord, propose, publish } from "../policy/publish"
import { finishMigration, migrateShare } from "./migrate"

/**
 * Results of a proposal. OVERTAKEN: another thread published first. Compute the record again: extensions may have another place by
 * now, and memory that was free for them may be in use, even if it is the same place again.
 */
export const OVERTAKEN: i32 = 0
export const IN_FORCE: i32 = 1
/** Words of an older policy could not be migrated. */
export const GIVEN_UP: i32 = 2

/** Puts a proposed record, with all the numbers that JavaScript computes, in force from `nowUs` on. */
export function update(record: usize, nowUs: i64, seenEpoch: u64): i32 {
  let outcome = OVERTAKEN
  while (outcome == OVERTAKEN) {
    if (!prepare()) outcome = GIVEN_UP
    else if (epoch != seenEpoch) break
    else if (publishNext(record, nowUs, false)) outcome = IN_FORCE
  }
  // A record without a successor is needed by no state word.
  if (outcome != IN_FORCE) setField(record, RECORD_EPOCH, 0)
  closeRecord(record)
  return outcome
}

/** Brings this thread up to date with the policy in force, and migrates the share of the table that the next change requires. */
export function prepare(): bool {
  let migrated: u64
  do {
    refresh()
    migrated = epoch
    if (!finishMigration(migrated)) return false
    // Migration reads the policy too, and may meet one whose share is not migrated yet.
  } while (epoch != migrated)
  return true
}

/** Moves the time base up when `nowUs` has come too far from it for a state word. True: the caller must start again. */
@inline export function rebased(nowUs: i64): bool {
  if (isWithinRange(nowUs)) return false
  rebase(nowUs)
  return true
}

function rebase(nowUs: i64): void {
  const record = propose()
  const prepared = prepare()
  // The same policy, except the sequence number. The copy is torn if another record is published meanwhile, but then the swap fails.
  memory.copy(record + RECORD_PREVIOUS, policyRecord() + RECORD_PREVIOUS, RECORD_SIZE - RECORD_PREVIOUS)
  if (!prepared || isWithinRange(nowUs) || !publishNext(record, nowUs, true)) setField(record, RECORD_EPOCH, 0)
  closeRecord(record)
}

/** Publishes the record and migrates the share of the table that belongs to this change. */
function publishNext(record: usize, nowUs: i64, keepsDebt: bool): bool {
  const next = epoch + 1
  if (!publish(record, nowUs, keepsDebt)) return false
  // Before the first policy the table is empty. To read it all the same would take most of the time of creating a limiter.
  if (next == 1) raise(base + MIGRATED, 1)
  else migrateShare(next)
  return true
}
