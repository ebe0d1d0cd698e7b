/**
 * Random numbers that an integer seed repeats: xoshiro128**, seeded by the finalizer of splitmix.
 *
 * Source: D. Blackman and S. Vigna, "Scrambled linear pseudorandom number generators", 2018.
 */
export class SeededRandom {
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

  /** A fraction in [0, 1) of 53 bits. */
  fraction(): number {
    return ((this.bits() >>> 5) * 2 ** 26 + (this.bits() >>> 6)) / 2 ** 53
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
}
