import { ENTRIES_PER_LINE } from "./build-flags"

// The shared memory, in bytes from the base of a limiter's section; `allOf` keeps one section for each policy in one memory.
// JavaScript reads these offsets from the exports of the compiled module.
//
//       0 ┌────────────────────────────────────────────┐
//         │ line 0, read by every take, seldom written │  epoch | banned until | lines | on full | lines of the parts
//      64 ├────────────────────────────────────────────┤
//         │ line 1, written by new keys and counters  │  takeover high | keys | evictions | refusals | retries | ...
//     128 ├────────────────────────────────────────────┤
//         │ new keys without room                     │  overflows | grown | budget, then their limits
//     256 ├────────────────────────────────────────────┤
//         │ releases                                   │
//    4096 ├────────────────────────────────────────────┤
//         │ policy records, a ring of 64 x 512         │  numbers of the core, then those of JavaScript
//   36864 ├────────────────────────────────────────────┤
//         │ ban filter, 8192 x 8                       │  banned until, by hash: read only while a ban is in force
//  102400 ├────────────────────────────────────────────┤
//         │ descriptors, 32 x 1024                     │  multi-word swaps
//  135168 ├────────────────────────────────────────────┤
//         │ table: lines of 64 bytes, 4 entries each   │  entry: identity word | state word
//         ├────────────────────────────────────────────┤
//         │ extensions, where one word is not enough   │  by entry: a previous count, a ring, permits (the policy record
//         ├────────────────────────────────────────────┤  holds the address and the bytes of each)
//         │ shared counters                            │  of new keys without room, 8 bytes each
//         ├────────────────────────────────────────────┤
//         │ ring words and rings, once work is open    │  at the end of the memory: see algorithms/hold-ring.ts
//         └────────────────────────────────────────────┘

/** Epoch of the policy in the high half, sequence number of its record in the low half. */
export const EPOCH: usize = 0
/** Latest end of any ban, in microseconds since the Unix epoch: no ban is in force after it. */
export const BANNED_UNTIL: usize = 8
/** Number of table lines, in all parts. */
export const LINES: usize = 16
/** What a new key gets when no entry is idle. 1: a denial. 0: the place of the key with the least debt that would pass. */
export const DENY_WHEN_FULL: usize = 24
/** The option `maxKeys`, 0 without it. JavaScript reads it when it lays out another section in the same memory. */
export const MAX_KEYS: usize = 32
/** Lines of the first part of the table, 0 if it is the only one, and of the second; the third has the rest. Never change. */
export const FIRST_LINES: usize = 40
export const SECOND_LINES: usize = 48

/** Before any time. */
export const LONG_AGO: i64 = -(1 << 62)

/** Latest time at which an owner was judged idle and evicted, in microseconds since the Unix epoch. */
export const TAKEOVER_HIGH: usize = 64
export const KEYS: usize = 72
export const EVICTIONS: usize = 80
export const REFUSALS: usize = 88
export const CAS_RETRIES: usize = 96
export const CONTENTIONS: usize = 104
/** The last epoch whose share of the table has been migrated. */
export const MIGRATED: usize = 112
/** Next sequence number of a policy record. */
export const NEXT_SEQUENCE: usize = 120

/** Requests of new keys without room that passed on a shared counter. */
export const OVERFLOWS: usize = 128
/** The last part of the table that any key has entered, 0 to 2. No decision depends on it. */
export const GROWN: usize = 136
/** What all new keys without room have spent together, see overflow.ts. */
export const OVERFLOW_BUDGET: usize = 144
/** Address and number of the shared counters; 0 without them. These two and the next three never change. */
export const OVERFLOW_COUNTERS: usize = 192
export const OVERFLOW_COUNTER_COUNT: usize = 200
/**
 * Requests that may pass in a window, and the window in microseconds. Without a window: the requests of `limit` keys under the
 * policy.
 */
export const OVERFLOW_LIMIT: usize = 208
export const OVERFLOW_WINDOW_US: usize = 216
/** To how many keys the table grows, where that is not by default, otherwise 0: kept like `MAX_KEYS`. */
export const GROW_TO: usize = 224
/** Whether no budget is shared by new keys without room, kept likewise. */
export const OVERFLOW_DENIED: usize = 232
/** Address of the ring words and rings, and in the upper half how many there are, 0 until the first work is open; and the ring to look at next. */
export const RINGS: usize = 240
export const NEXT_RING: usize = 248

/** Number of changes that gave something back early, 32 bits: waiting callers watch it. */
export const RELEASED: usize = 256
/** The changes that concern all keys at once, 32 bits. */
export const RELEASED_BY_ALL: usize = 260
/** Threads that watch, 32 bits. A thread that dies stays counted. */
export const RELEASE_WATCHERS: usize = 264
/** Address of a page of more descriptors, 0 without one. */
export const MORE_DESCRIPTORS: usize = 272
/** Changes of each group of keys, 32 bits each. */
export const RELEASE_GROUPS: usize = 2048
export const RELEASE_GROUP_COUNT: u32 = 512

export const RECORDS: usize = 4096
export const RECORD_COUNT: i32 = 64
export const RECORD_SIZE: usize = 512
/** Offsets in a policy record. The sequence number is marked while a thread writes the record. */
export const RECORD_SEQUENCE: usize = 0
export const RECORD_PREVIOUS: usize = 8
// Numbers that JavaScript computes for the core: see policy-numbers.ts there.
export const RECORD_UNITS_PER_US: usize = 16
export const RECORD_UNITS_PER_TOKEN: usize = 24
export const RECORD_CAPACITY: usize = 32
export const RECORD_ENCODING: usize = 40
export const RECORD_WINDOW_US: usize = 48
export const RECORD_COUNT_BITS: usize = 56
export const RECORD_NUMBER_BITS: usize = 64
export const RECORD_TICK_US: usize = 72
export const RECORD_SLOTS: usize = 80
/** Fixed windows: tells calendars apart, 0 without one. */
export const RECORD_CALENDAR: usize = 88
/** Address of the extensions, and the bytes of each entry's. */
export const RECORD_EXTENSIONS: usize = 96
export const RECORD_STRIDE: usize = 104
// Numbers that the core adds when it publishes the record.
export const RECORD_BASE_US: usize = 112
export const RECORD_REBASE_AT_US: usize = 120
export const RECORD_SINCE_US: usize = 128
export const RECORD_KEEPS_DEBT: usize = 136
/** The epoch under which the record was last published. */
export const RECORD_EPOCH: usize = 144
/** Grows when counts of earlier windows lose their meaning. */
export const RECORD_ERA: usize = 152
/** From here on only JavaScript reads: limit, window, burst, name. */
export const RECORD_DESCRIPTION: usize = 160
/** Grows with each change of the numbers. What was charged before it is not given back: the change may have cut what keys had spent. */
export const RECORD_GENERATION: usize = 504

/** Latest end of any ban among the keys that share a slot, in microseconds since the Unix epoch. */
export const BAN_FILTER: usize = 36864
export const BAN_FILTER_SLOTS: u64 = 8192

export const DESCRIPTORS: usize = 102400
export const DESCRIPTOR_COUNT: i32 = 32
export const DESCRIPTOR_SIZE: usize = 1024

export const TABLE: usize = 135168
export const ENTRY_SIZE: usize = 16
export const LINE_SIZE: usize = ENTRY_SIZE * ENTRIES_PER_LINE
/** Offset of the state word in an entry; the identity word is at 0. */
export const STATE: usize = 8

/** Where this instance's section of the memory begins, and its table. */
export let base: usize = 0
export let tableAddress: usize = 0

export function openSection(address: usize): void {
  base = address
  tableAddress = address + TABLE
}
