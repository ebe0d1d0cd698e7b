// A random number for counters that are right on average: this thread's own sequence, seeded by JavaScript. Not for secrets.
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
