import { ENTRIES_PER_LINE } from "./build-flags"

// The shared memory, in bytes. JavaScript reads these offsets off the compiled module's exports.
//
//       0 ┌────────────────────────────────────────────┐
//         │ line 0, read by every take, seldom written │  epoch | blocked until | lines | on full
//      64 ├────────────────────────────────────────────┤
//         │ line 1, written by newcomers and counters  │  takeover high | keys | evictions | refusals | retries | ...
//    4096 ├────────────────────────────────────────────┤
//         │ policy blocks, a ring of 64 x 256          │  numbers of the core, then those of JavaScript
//   20480 ├────────────────────────────────────────────┤
//         │ gates, 8192 x 8                            │  blocked until, by hash: read only while any block is in force
//   86016 ├────────────────────────────────────────────┤
//         │ table: lines of 64 bytes, 4 entries each   │  entry: identity word | state word
//         └────────────────────────────────────────────┘

/** Policy epoch in the high half, ticket of its block in the low half. */
export const EPOCH: usize = 0
/** Latest end of any block, in microseconds since the Unix epoch: no block is in force after it. */
export const BLOCKED_UNTIL: usize = 8
/** Number of table lines. */
export const LINES: usize = 16
/** 1: deny a newcomer when nothing is idle; 0: forget the key with the least debt that would pass. */
export const DENY_WHEN_FULL: usize = 24

/** Latest time at which an owner was judged idle and forgotten, microseconds since the Unix epoch. */
export const TAKEOVER_HIGH: usize = 64
export const KEYS: usize = 72
export const EVICTIONS: usize = 80
export const REFUSALS: usize = 88
export const CAS_RETRIES: usize = 96
export const CONTENTIONS: usize = 104
/** The last epoch whose share of the table has been swept. */
export const SWEPT: usize = 112
/** Next ticket for a policy block. */
export const TICKETS: usize = 120

export const BLOCKS: usize = 4096
export const BLOCK_COUNT: u64 = 64
export const BLOCK_SIZE: usize = 256
/** Offsets in a policy block; the core's numbers come first. The ticket is marked while its holder writes. */
export const BLOCK_TICKET: usize = 0
export const BLOCK_PREVIOUS: usize = 8
export const BLOCK_UNITS_PER_US: usize = 16
export const BLOCK_UNITS_PER_TOKEN: usize = 24
export const BLOCK_CAPACITY: usize = 32
export const BLOCK_PACKED: usize = 40
export const BLOCK_BASE_US: usize = 48
export const BLOCK_REBASE_AT_US: usize = 56
export const BLOCK_SINCE_US: usize = 64
export const BLOCK_KEEPS_DEBT: usize = 72
/** The epoch that it was last to be published as. */
export const BLOCK_EPOCH: usize = 80
/** What only JavaScript reads, from here to the end of the block: limit, window, burst, name. */
export const BLOCK_DESCRIPTION: usize = 88

/** Latest end of any block among the keys that share a gate, in microseconds since the Unix epoch. */
export const GATES: usize = 20480
export const GATE_COUNT: u64 = 8192

export const TABLE: usize = 86016
export const ENTRY_SIZE: usize = 16
export const LINE_SIZE: usize = ENTRY_SIZE * ENTRIES_PER_LINE
/** The state word's offset in an entry; the identity word is at 0. */
export const STATE: usize = 8
