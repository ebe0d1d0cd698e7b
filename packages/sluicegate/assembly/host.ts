// What the core asks of the thread that runs it. Each of these is rare: none is on the path of an ordinary take.

/** The policy in shared memory is another one than this thread knew. */
@external("host", "policyChanged") export declare function policyChanged(): void
/** Another thread is in the way, for the `attempt`th time: give it a moment. */
@external("host", "pause") export declare function pause(attempt: i32): void
/** Where a window of the calendar of a block's policy begins and ends, by a time in it; microseconds since the Unix epoch. */
@external("host", "calendarWindowStart") export declare function calendarWindowStart(record: usize, us: f64): f64
@external("host", "calendarWindowEnd") export declare function calendarWindowEnd(record: usize, us: f64): f64
/** Exploration only: the scheduler may switch threads here. */
@external("host", "yieldPoint") export declare function yieldPoint(): void
