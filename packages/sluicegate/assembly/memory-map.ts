import { ENTRIES_PER_LINE } from "./build-flags"

// The shared memory, in bytes, from the base of a limiter's section on; `allOf` keeps one section a policy in one memory.
// JavaScript reads these offsets off the compiled module's exports.
//
//       0 ┌────────────────────────────────────────────┐
//         │ line 0, read by every take, seldom written │  epoch | blocked until | lines | on full | lines of the parts
//      64 ├────────────────────────────────────────────┤
//         │ line 1, written by newcomers and counters  │  takeover high | keys | evictions | refusals | retries | ...
//     128 ├────────────────────────────────────────────┤
//         │ newcomers without room                     │  overflows | grown | budget, then what bounds them
//     256 ├────────────────────────────────────────────┤
//         │ releases                                   │
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
//         ├────────────────────────────────────────────┤  says where and how many bytes)
//         │ shared counters                            │  of newcomers without room, 8 bytes each
//         └────────────────────────────────────────────┘

/** Policy epoch in the high half, ticket of its block in the low half. */
export const EPOCH: usize = 0
/** Latest end of any block, in microseconds since the Unix epoch: no block is in force after it. */
export const BANNED_UNTIL: usize = 8
/** Number of table lines, in all parts. */
export const LINES: usize = 16
/** 1: deny a newcomer when nothing is idle; 0: forget the key with the least debt that would pass. */
export const DENY_WHEN_FULL: usize = 24
/** The option of that name, 0 when it was not given: JavaScript keeps it here for one who makes another section beside this one. */
export const MAX_KEYS: usize = 32
/** Lines of the first part of the table, 0 when there is no other; of the second; the rest are the third's. They never change. */
export const FIRST_LINES: usize = 40
export const SECOND_LINES: usize = 48

/** Latest time at which an owner was judged idle and forgotten, microseconds since the Unix epoch. */
export const TAKEOVER_HIGH: usize = 64
export const KEYS: usize = 72
export const EVICTIONS: usize = 80
export const REFUSALS: usize = 88
export const CAS_RETRIES: usize = 96
export const CONTENTIONS: usize = 104
/** The last epoch whose share of the table has been swept. */
export const MIGRATED: usize = 112
/** Next ticket for a policy block. */
export const NEXT_SEQUENCE: usize = 120

/** Requests of newcomers without room that passed on a shared counter. */
export const OVERFLOWS: usize = 128
/** The last part of the table that a key ever moved into, 0 to 2. It decides nothing. */
export const GROWN: usize = 136
/** What all newcomers without room have spent together, see overflow.ts. */
export const OVERFLOW_BUDGET: usize = 144
/** Address of the shared counters, and how many there are; 0 for none. Like the next three they never change. */
export const OVERFLOW_COUNTERS: usize = 192
export const OVERFLOW_COUNTER_COUNT: usize = 200
/** Requests that may pass in a window, in microseconds; without a window as many as so many keys may make under the policy. */
export const OVERFLOW_LIMIT: usize = 208
export const OVERFLOW_WINDOW_US: usize = 216
/** The option `growTo`, 0 when it was not given: kept like `MAX_KEYS`. */
export const GROW_TO: usize = 224
/** The option `newcomers: false`, likewise. */
export const OVERFLOW_DENIED: usize = 232

/** Changes by which something came back before its time, 32 bits: who waits in line watches it. */
export const RELEASED: usize = 256
/** Those of all keys at once, 32 bits. */
export const RELEASED_BY_ALL: usize = 260
/** Threads that watch, 32 bits; one that died is never taken off. */
export const RELEASE_WATCHERS: usize = 264
/** Address of a page of more descriptors, 0 for none. */
export const MORE_DESCRIPTORS: usize = 272
/** Those of each group of keys, 32 bits each. */
export const RELEASE_GROUPS: usize = 2048
export const RELEASE_GROUP_COUNT: u32 = 512

export const RECORDS: usize = 4096
export const RECORD_COUNT: i32 = 64
export const RECORD_SIZE: usize = 512
/** Offsets in a policy block. The ticket is marked while its holder writes. */
export const RECORD_SEQUENCE: usize = 0
export const RECORD_PREVIOUS: usize = 8
// What JavaScript counts out for the core: see policy-numbers.ts there.
export const RECORD_UNITS_PER_US: usize = 16
export const RECORD_UNITS_PER_TOKEN: usize = 24
export const RECORD_CAPACITY: usize = 32
export const RECORD_ENCODING: usize = 40
export const RECORD_WINDOW_US: usize = 48
export const RECORD_COUNT_BITS: usize = 56
export const RECORD_NUMBER_BITS: usize = 64
export const RECORD_TICK_US: usize = 72
export const RECORD_SLOTS: usize = 80
export const RECORD_SLOT_BYTES: usize = 88
/** Address and bytes an entry of the companions. */
export const RECORD_EXTENSIONS: usize = 96
export const RECORD_STRIDE: usize = 104
// What the core adds when it publishes the block.
export const RECORD_BASE_US: usize = 112
export const RECORD_REBASE_AT_US: usize = 120
export const RECORD_SINCE_US: usize = 128
export const RECORD_KEEPS_DEBT: usize = 136
/** The epoch that it was last to be published as. */
export const RECORD_EPOCH: usize = 144
/** Grows when counts of earlier windows lose their meaning. */
export const RECORD_ERA: usize = 152
/** Of a fixed window: tells calendars apart, 0 without one. */
export const RECORD_CALENDAR: usize = 160
/** What only JavaScript reads, from here to the end of the block: limit, window, burst, name. */
export const RECORD_DESCRIPTION: usize = 168

/** Latest end of any block among the keys that share a gate, in microseconds since the Unix epoch. */
export const BAN_FILTER: usize = 36864
export const BAN_FILTER_SLOTS: u64 = 8192

export const DESCRIPTORS: usize = 102400
export const DESCRIPTOR_COUNT: i32 = 64
export const DESCRIPTOR_SIZE: usize = 512

export const TABLE: usize = 135168
export const ENTRY_SIZE: usize = 16
export const LINE_SIZE: usize = ENTRY_SIZE * ENTRIES_PER_LINE
/** The state word's offset in an entry; the identity word is at 0. */
export const STATE: usize = 8

/** Where this instance's section of the memory begins. */
export let base: usize = 0
export let tableAddress: usize = 0

export function openSection(address: usize): void {
  base = address
  tableAddress = address + TABLE
}
