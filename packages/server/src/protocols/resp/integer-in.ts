const ZERO = 0x30
const MINUS = 0x2d
const PLUS = 0x2b
/** Integers with fewer digits are exact doubles. */
const EXACT_DIGITS = 15
const LEAST = -(2n ** 63n)
const MOST = 2n ** 63n - 1n

/** The decimal integer of 64 bits that the bytes spell, with an optional sign, rounded to a double; NaN if they spell none. */
export function integerIn(bytes: Buffer, start: number, end: number): number {
  const sign = bytes[start]
  const first = start < end && (sign === MINUS || sign === PLUS) ? start + 1 : start
  if (first >= end) return Number.NaN
  let value = 0
  for (let at = first; at < end; at++) {
    const digit = (bytes[at] as number) - ZERO
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  if (end - first > EXACT_DIGITS) return roundedIn(bytes.toString('latin1', first, end), sign === MINUS)
  return sign === MINUS ? -value : value
}

function roundedIn(digits: string, isNegative: boolean): number {
  const value = isNegative ? -BigInt(digits) : BigInt(digits)
  return value < LEAST || value > MOST ? Number.NaN : Number(value)
}
