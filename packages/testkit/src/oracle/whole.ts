// Whole numbers of any size: times in microseconds, counts of tokens.

/** A reading or a length in milliseconds as whole microseconds, the nearest. */
export function toUs(ms: number): bigint {
  return BigInt(Math.round(ms * 1000))
}

/** A length in microseconds as whole milliseconds, rounded up; 0 for none or less. */
export function ceilMs(us: bigint): number {
  return us <= 0n ? 0 : Number(ceilDiv(us, 1000n))
}

/** `a / b` rounded up, for a >= 0 and b > 0. */
export function ceilDiv(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b
}

/** `a / b` rounded down, for b > 0. */
export function floorDiv(a: bigint, b: bigint): bigint {
  return a >= 0n ? a / b : -ceilDiv(-a, b)
}

export function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

export function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
