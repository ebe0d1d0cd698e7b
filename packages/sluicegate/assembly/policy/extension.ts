import { ENTRY_SIZE, RECORD_COUNT_BITS, RECORD_EXTENSIONS, RECORD_STRIDE, RECORD_TICK_US, tableAddress } from "../memory-map"
import { countBits, extensions, stride, tickUs } from "./policy"
import { field } from "./policy-record"

// Where one word is not enough, each entry has an *extension*: `stride` bytes of its own after the table, or in memory that was
// grown for it. An extension has a meaning only together with the entry's state word.

@inline export function extensionOf(entry: usize): usize {
  return extensions + numberOf(entry) * stride
}

/** The same under the policy of a record. */
@inline export function extensionIn(record: usize, entry: usize): usize {
  return <usize>field(record, RECORD_EXTENSIONS) + numberOf(entry) * <usize>field(record, RECORD_STRIDE)
}

@inline function numberOf(entry: usize): usize {
  return (entry - tableAddress) / ENTRY_SIZE
}

/** Whether a policy's extensions have another place or another encoding than those of the policy in force. */
export function extensionMoved(record: usize): bool {
  return <usize>field(record, RECORD_EXTENSIONS) != extensions || <usize>field(record, RECORD_STRIDE) != stride
    || field(record, RECORD_COUNT_BITS) != countBits || field(record, RECORD_TICK_US) != tickUs
}
