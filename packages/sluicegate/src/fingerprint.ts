// HalfSipHash-1-3 with 64 bits of output over the UTF-16 units of a key, keyed by a limiter's random secret, so that nobody
// outside can craft keys that share a table line. Lone surrogates are units like any other.
//
// Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012, and its 32-bit variant HalfSipHash.

/** The two halves of the last {@link fingerprint}: no object is made on the hot path. */
export let low = 0
export let high = 0

/** Sets {@link low} and {@link high} to the fingerprint of `key` under the secret `k0`, `k1`. */
export function fingerprint(key: string, k0: number, k1: number): void {
  let v0 = k0
  let v1 = k1 ^ 0xee
  let v2 = 0x6c796765 ^ k0
  let v3 = 0x74656462 ^ k1
  const length = key.length
  const even = length & ~1
  for (let i = 0; i <= even; i += 2) {
    // The last word holds the odd unit, if any, and the length in bytes.
    const word =
      i < even ? key.charCodeAt(i) | (key.charCodeAt(i + 1) << 16) : (length << 25) | (length > even ? key.charCodeAt(i) : 0)
    v3 ^= word
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= word
  }
  v2 ^= 0xee
  for (let round = 0; round < 6; round++) {
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    if (round === 2) {
      low = v1 ^ v3
      v1 ^= 0xdd
    }
  }
  high = v1 ^ v3
}

/** Two random 32-bit numbers. */
export function randomSecret(): readonly [number, number] {
  const [k0 = 0, k1 = 0] = crypto.getRandomValues(new Int32Array(2))
  return [k0, k1]
}
