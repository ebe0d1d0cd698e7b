// Encodings of the 56-bit value in a state word. Each belongs to one algorithm; some algorithms have several, by the width they
// need.

/** Theoretical arrival time (GCRA, and buckets too large to be packed). */
export const ARRIVAL: i32 = 0
/** Packed token bucket. */
export const BUCKET: i32 = 1
export const FIXED: i32 = 2
/** Two counters in one word. */
export const SLIDING: i32 = 3
/** The current counter; the previous one is in a second word. */
export const WIDE: i32 = 4
/** The newest request; the earlier ones are in a ring. */
export const LOG: i32 = 5
/** The latest time of a change; the permits are in slots. */
export const CONCURRENCY: i32 = 6
