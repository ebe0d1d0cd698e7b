// Counters in floating point. The fine one has 16 bits of mantissa and 5 of exponent. Up to 2^16 it counts exactly; beyond, a step
// smaller than the last place is made with the probability that makes the count right on average. Its standard error stays below
// 0.4 %. The coarse one, which never counts, has 10 and 5 bits and is rounded up: exact up to 2^10, then at most 1/512 too large.
//
// Source: R. Morris, "Counting large numbers of events in small registers", 1978; M. Csűrös, "Approximate counting with a
// floating-point counter", 2010.

const FINE_BITS: u64 = 16
const FINE_WIDTH: u64 = 21
const FINE_MASK: u64 = (1 << 21) - 1
const COARSE_BITS: u64 = 10
const COARSE_MASK: u64 = (1 << 15) - 1

// Both are in one value, the fine one lowest.

@inline export function fine(bits: u64): i64 {
  return decoded(bits & FINE_MASK, FINE_BITS)
}

@inline export function coarse(bits: u64): i64 {
  return decoded((bits >> FINE_WIDTH) & COARSE_MASK, COARSE_BITS)
}

export function fineOf(count: i64): u64 {
  return encoded(count, FINE_BITS)
}

export function coarseOf(count: i64): u64 {
  return encoded(count, COARSE_BITS) << FINE_WIDTH
}

/** A fine counter after it changed by `by`, which may be negative. */
export function stepped(bits: u64, by: i64): u64 {
  const count = max<i64>(fine(bits) + by, 0)
  const place = placeOf(count, FINE_BITS)
  const rest = <u64>count & ((<u64>1 << place) - 1)
  const up = rest != 0 && (random() & ((<u64>1 << place) - 1)) < rest
  return encoded(<i64>((<u64>count >> place) + (up ? 1 : 0)) << <i64>place, FINE_BITS)
}

@inline function decoded(bits: u64, mantissaBits: u64): i64 {
  return <i64>((bits & ((<u64>1 << mantissaBits) - 1)) << (bits >> mantissaBits))
}

/** Rounded up. */
function encoded(count: i64, mantissaBits: u64): u64 {
  let place = placeOf(count, mantissaBits)
  let mantissa = (<u64>count + ((<u64>1 << place) - 1)) >> place
  if (mantissa >> mantissaBits != 0) {
    mantissa = (mantissa + 1) >> 1
    place++
  }
  return (place << mantissaBits) | mantissa
}

/** The value of a mantissa's last place, as a power of two. */
@inline function placeOf(count: i64, mantissaBits: u64): u64 {
  const bits = 64 - clz<u64>(<u64>count)
  return bits > mantissaBits ? bits - mantissaBits : 0
}

// Random numbers for counters that are right on average: each thread's own sequence, seeded by JavaScript. Not for secrets.
//
// Source: G. Marsaglia, "Xorshift RNGs", 2003; S. Vigna, "An experimental exploration of Marsaglia's xorshift generators,
// scrambled", 2016 (xorshift64*).

let state: u64 = 0x9e3779b97f4a7c15

export function seedRandom(low: u32, high: u32): void {
  state = (<u64>high << 32) | <u64>low | 1
}

export function random(): u64 {
  state ^= state >> 12
  state ^= state << 25
  state ^= state >> 27
  return (state * 0x2545f4914f6cdd1d) >> 11
}
