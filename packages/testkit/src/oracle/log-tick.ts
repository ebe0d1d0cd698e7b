import type { SlidingLogSpec } from './policy-spec.js'

const STATE_BITS = 56
const TIME_BITS_4 = 30

/**
 * The declared rounding of a log's times: 56 bits hold a time and a sum of costs up to twelve limits, and an eighth of all times must
 * span the window; a slot of four bytes has 30 bits for it. The tick is the smallest power of two microseconds that does.
 */
export function logTickUs({ limit, windowMs, slotBytes }: SlidingLogSpec): bigint {
  const windowUs = Math.round(windowMs * 1000)
  const timeBits = STATE_BITS - (12 * limit).toString(2).length
  const spanBits = slotBytes === 4 ? Math.min(TIME_BITS_4, timeBits - 3) : timeBits - 3
  let tickUs = 1
  while (windowUs / tickUs > 2 ** spanBits) tickUs *= 2
  return BigInt(tickUs)
}
