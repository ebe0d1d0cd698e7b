import { ENTRIES_PER_LINE } from "./build-flags"

// The shared memory, in bytes, from the base of a limiter's section on; `allOf` keeps one section a policy in one memory.
// JavaScript reads these offsets off the compiled module's exports.
//
//       0 ┌────────────────────────────────────────────┐
//         │ line 0, read by every take, seldom written │  epoch | blocked until | lines | on full
//      64 ├────────────────────────────────────────────┤
//         │ line 1, written by newcomers and counters  │  takeover high | keys | evictions | refusals | retries | ...
//    4096 ├────────────────────────────────────────────┤
//         │ policy blocks, a ring of 64 x 512          │  numbers of the core, then those of JavaScript
//   36864 ├────────────────────────────────────────────┤
//         │ gates, 8192 x 8                            │  blocked until, by hash: read only while any block is in force
//  102400 ├────────────────────────────────────────────┤
//         │ descriptors, 64 x 512                      │  swaps over several words
//  135168 ├────────────────────────────────────────────┤
//         │ table: lines of 64 bytes, 4 entries each   │  entry: identity word | state word
//         ├────────────────────────────────────────────┤
//         │ companions, where one word is not enough   │  by entry: a previous count, a ring, permits (the policy block
//         └────────────────────────────────────────────┘  says where and how many bytes)

/** Policy epoch in the high half, ticket of its block in the low half. */
export const EPOCH: usize = 0
/** Latest end of any block, in microseconds since the Unix epoch: no block is in force after it. */
export const BLOCKED_UNTIL: usize = 8
/** Number of table lines. */
export const LINES: usize = 16
/** 1: deny a newcomer when nothing is idle; 0: forget the key with the least debt that would pass. */
export const DENY_WHEN_FULL: usize = 24
/** The option of that name, 0 when it was not given: JavaScript keeps it here for one who makes another section beside this one. */
export const MAX_KEYS: usize = 32

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

/** Changes by which something came back before its time, 32 bits: who waits in line watches it. */
export const RELEASED: usize = 128
/** Those of all keys at once, 32 bits. */
export const RELEASED_BY_ALL: usize = 132
/** Threads that watch, 32 bits; one that died is never taken off. */
export const RELEASE_WATCHERS: usize = 136
/** Address of a page of more descriptors, 0 for none. */
export const MORE_DESCRIPTORS: usize = 144
/** Those of each group of keys, 32 bits each. */
export const RELEASE_GROUPS: usize = 2048
export const RELEASE_GROUP_COUNT: u32 = 512

export const BLOCKS: usize = 4096
export const BLOCK_COUNT: i32 = 64
export const BLOCK_SIZE: usize = 512
/** Offsets in a policy block. The ticket is marked while its holder writes. */
export const BLOCK_TICKET: usize = 0
export const BLOCK_PREVIOUS: usize = 8
// What JavaScript counts out for the core: see policy-numbers.ts there.
export const BLOCK_UNITS_PER_US: usize = 16
export const BLOCK_UNITS_PER_TOKEN: usize = 24
export const BLOCK_CAPACITY: usize = 32
export const BLOCK_FORM: usize = 40
export const BLOCK_WINDOW_US: usize = 48
export const BLOCK_COUNT_BITS: usize = 56
export const BLOCK_NUMBER_BITS: usize = 64
export const BLOCK_TICK_US: usize = 72
export const BLOCK_SLOTS: usize = 80
export const BLOCK_SLOT_BYTES: usize = 88
/** Address and bytes an entry of the companions. */
export const BLOCK_COMPANIONS: usize = 96
export const BLOCK_STRIDE: usize = 104
// What the core adds when it publishes the block.
export const BLOCK_BASE_US: usize = 112
export const BLOCK_REBASE_AT_US: usize = 120
export const BLOCK_SINCE_US: usize = 128
export const BLOCK_KEEPS_DEBT: usize = 136
/** The epoch that it was last to be published as. */
export const BLOCK_EPOCH: usize = 144
/** Grows when counts of earlier windows lose their meaning. */
export const BLOCK_ERA: usize = 152
/** Of a fixed window: tells calendars apart, 0 without one. */
export const BLOCK_CALENDAR: usize = 160
/** What only JavaScript reads, from here to the end of the block: limit, window, burst, name. */
export const BLOCK_DESCRIPTION: usize = 168

/** Latest end of any block among the keys that share a gate, in microseconds since the Unix epoch. */
export const GATES: usize = 36864
export const GATE_COUNT: u64 = 8192

export const DESCRIPTORS: usize = 102400
export const DESCRIPTOR_COUNT: i32 = 64
export const DESCRIPTOR_SIZE: usize = 512

export const TABLE: usize = 135168
export const ENTRY_SIZE: usize = 16
export const LINE_SIZE: usize = ENTRY_SIZE * ENTRIES_PER_LINE
/** The state word's offset in an entry; the identity word is at 0. */
export const STATE: usize = 8
