import { nextNumber, putNumber } from "../host"

// Numbers of a saved key. Each is a whole number from 0 to 2^53 - 1, which the host writes with 7 bits a byte. A number that may be
// negative is folded, so that -1 is 1 and 1 is 2; one that may be larger is written in two.

const HALF_BITS: i64 = 32
const HALF_MASK: i64 = (1 << 32) - 1
const MOST: f64 = 9007199254740991.0

export const MOST_NUMBER: i64 = (1 << 53) - 1
export const MOST_US: i64 = (1 << 52) - 1

/** Whether all that was read so far was there, and no larger than allowed. */
export let sound: bool = false

export function beginReading(): void {
  sound = true
}

export function unsound(): void {
  sound = false
}

@inline export function put(number: i64): void {
  putNumber(<f64>number)
}

export function putWide(number: i64): void {
  const folded = fold(number)
  put(folded & HALF_MASK)
  put(<i64>(<u64>folded >> HALF_BITS))
}

/** A time; of a key that was never charged, that of the base, it may lie before all others. */
export function putSigned(number: i64): void {
  put(fold(min<i64>(max<i64>(number, -MOST_US), MOST_US)))
}

/** Reads past the last number: there must be none. */
export function endReading(): void {
  const number = nextNumber()
  if (number == number) sound = false
}

/** The next number, 0 to `most`; 0 when it is none. */
export function next(most: i64): i64 {
  const number = nextNumber()
  if (number >= 0 && number <= MOST && <i64>number <= most) return <i64>number
  sound = false
  return 0
}

/** Down from -`most`. */
export function nextSigned(most: i64): i64 {
  return unfold(next(most * 2))
}

export function nextWide(most: i64): i64 {
  const low = next(HALF_MASK)
  const high = next(<i64>1 << 31)
  const number = unfold((high << HALF_BITS) | low)
  if (number <= most && number >= -most) return number
  sound = false
  return 0
}

@inline function fold(number: i64): i64 {
  return (number << 1) ^ (number >> 63)
}

@inline function unfold(folded: i64): i64 {
  return <i64>(<u64>folded >> 1) ^ -(folded & 1)
}
