// Calls from the core to the thread that runs it. All are rare: an ordinary take makes none.

/** The policy in force differs from this thread's copy. */
@external("host", "policyChanged") export declare function policyChanged(): void
/** Another thread is in the way for the `attempt`th time: wait a moment. */
@external("host", "pause") export declare function pause(attempt: i32): void
/** Begin and end of the calendar window around `us`, under the calendar of a policy record; microseconds since the Unix epoch. */
@external("host", "calendarWindowStart") export declare function calendarWindowStart(record: usize, us: f64): f64
@external("host", "calendarWindowEnd") export declare function calendarWindowEnd(record: usize, us: f64): f64
// A key as whole numbers, see algorithms/saved-state.ts. The thread that runs the core keeps the bytes.
/** Begins a key again: numbers put since are forgotten, and its first number is read next. */
@external("host", "beginKey") export declare function beginKey(): void
/** The next key begins here. */
@external("host", "endKey") export declare function endKey(): void
/** Of a whole table: the key with this fingerprint is saved, in the entry with this number. */
@external("host", "savedEntry") export declare function savedEntry(number: i32, fingerprint: f64): void
/** Writes a whole number from 0 to 2^53 - 1. */
@external("host", "putNumber") export declare function putNumber(number: f64): void
/** Reads the next number; NaN when there is none. */
@external("host", "nextNumber") export declare function nextNumber(): f64
/** Exploration only: the scheduler may switch threads here. */
@external("host", "yieldPoint") export declare function yieldPoint(): void
