// Products of two numbers that do not fit 64 bits.

const LIMB_BITS: i64 = 17
const LIMB_MASK: i64 = (1 << 17) - 1
/** Below it `count` times any window fits. */
const NARROW: i64 = 1 << 18

/** What the last {@link quotient} left over: nothing, or less than `by`. */
let rest: i64 = 0

/** floor(count * us / by), for count < 2^51, us and by < 2^45, and a result below 2^45: by long division, 17 bits of `count` at a time. */
export function quotient(count: i64, us: i64, by: i64): i64 {
  if (count < NARROW) {
    const product = count * us
    rest = product % by
    return product / by
  }
  // A rest is below 2^45, so no sum reaches 2^63.
  const top = (count >> (2 * LIMB_BITS)) * us
  const middle = ((top % by) << LIMB_BITS) + ((count >> LIMB_BITS) & LIMB_MASK) * us
  const low = ((middle % by) << LIMB_BITS) + (count & LIMB_MASK) * us
  rest = low % by
  return ((((top / by) << LIMB_BITS) + middle / by) << LIMB_BITS) + low / by
}

/** The same, rounded up. */
export function quotientUp(count: i64, us: i64, by: i64): i64 {
  return quotient(count, us, by) + (rest > 0 ? 1 : 0)
}

/** min(ceil(debt * to / from), most), with a product of 128 bits, by long division. */
export function scaled(debt: u64, to: u64, from: u64, most: u64): u64 {
  const whole = debt / from
  if (whole >= most / to + 1) return most
  let rest = debt % from
  // rest * to / from, one bit of `to` at a time from the top; every remainder stays below from < 2^53.
  let quotient: u64 = 0
  let remainder: u64 = 0
  for (let bit: i32 = 63 - <i32>clz<u64>(to); bit >= 0; bit--) {
    quotient <<= 1
    remainder <<= 1
    if ((to >> bit) & 1) remainder += rest
    while (remainder >= from) {
      remainder -= from
      quotient++
    }
  }
  return min<u64>(whole * to + quotient + (remainder > 0 ? 1 : 0), most)
}
