/**
 * A small seeded generator of random numbers, so that every run can be repeated from one integer.
 *
 * Source: D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", 2018 (xoshiro128**), seeded by
 * the 32-bit finalizer of splitmix.
 */
export class Random {
  readonly #s = new Uint32Array(4)

  constructor(seed: number) {
    let x = seed >>> 0
    for (let i = 0; i < 4; i++) {
      x = (x + 0x9e3779b9) >>> 0
      let z = x
      z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
      this.#s[i] = z ^ (z >>> 16)
    }
  }

  /** 32 random bits as an unsigned integer. */
  bits(): number {
    const s = this.#s as unknown as [number, number, number, number]
    const scrambled = Math.imul(s[1], 5)
    const out = Math.imul((scrambled << 7) | (scrambled >>> 25), 9)
    const t = s[1] << 9
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = (s[3] << 11) | (s[3] >>> 21)
    return out >>> 0
  }

  /** A fraction in [0, 1) of 53 bits. */
  fraction(): number {
    return ((this.bits() >>> 5) * 2 ** 26 + (this.bits() >>> 6)) / 2 ** 53
  }

  /** An integer from `low` to `high`, both included. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1))
  }

  /** An integer from `low` (>= 1) to `high` whose *magnitude* is even: 1 to 9 is as likely as 1,000,000 to 9,999,999. */
  magnitude(low: number, high: number): number {
    const power = Math.log(low) + this.fraction() * (Math.log(high + 1) - Math.log(low))
    return Math.min(high, Math.max(low, Math.floor(Math.exp(power))))
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)] as T
  }
}
