// Products of two numbers that do not fit 64 bits.

const LOW_BITS: i64 = 17
const LOW_MASK: i64 = (1 << 17) - 1
/** Below it `count` times any window fits. */
const NARROW: i64 = 1 << 18

/** floor(count * us / by), for count < 2^34, us and by < 2^45, and a result below 2^45. */
export function quotient(count: i64, us: i64, by: i64): i64 {
  if (count < NARROW) return (count * us) / by
  const top = (count >> LOW_BITS) * us
  return ((top / by) << LOW_BITS) + (((top % by) << LOW_BITS) + (count & LOW_MASK) * us) / by
}

/** The same, rounded up. */
export function quotientUp(count: i64, us: i64, by: i64): i64 {
  if (count < NARROW) return (count * us + by - 1) / by
  const top = (count >> LOW_BITS) * us
  return ((top / by) << LOW_BITS) + (((top % by) << LOW_BITS) + (count & LOW_MASK) * us + by - 1) / by
}

