// How a state word's 56 bits are read: what JavaScript calls the algorithm, and where it has several, the width that fits.

/** Theoretical arrival time (GCRA, and buckets too large to be packed). */
export const ARRIVAL: i32 = 0
/** Packed token bucket. */
export const BUCKET: i32 = 1
export const FIXED: i32 = 2
/** Two counters in one word. */
export const SLIDING: i32 = 3
/** The current counter; the previous one is in a second word. */
export const WIDE: i32 = 4
/** Two floating counters in one word. */
export const COMPACT: i32 = 5
/** The newest request; those before it are in a ring. */
export const LOG: i32 = 6
/** The latest reading; the permits are in slots. */
export const CONCURRENCY: i32 = 7
