import { BLOCK_COMPANIONS, BLOCK_STRIDE, ENTRY_SIZE } from "./memory-map"
import { companions, stride } from "./policy"
import { field } from "./policy-block"
import { tableAddress } from "./table"

// Where one word is not enough, each entry has *companions*: `stride` bytes of its own after the table, or in memory that was grown
// for them. They mean nothing but together with the entry's state word.

@inline export function companionsOf(entry: usize): usize {
  return companions + numberOf(entry) * stride
}

/** The same under the policy of a block. */
@inline export function companionsIn(block: usize, entry: usize): usize {
  return <usize>field(block, BLOCK_COMPANIONS) + numberOf(entry) * <usize>field(block, BLOCK_STRIDE)
}

@inline function numberOf(entry: usize): usize {
  return (entry - tableAddress) / ENTRY_SIZE
}
