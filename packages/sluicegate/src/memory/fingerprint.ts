// A keyed 64-bit hash of a key's UTF-16 units, so that clients cannot craft keys that share a table line or a fingerprint.
// HalfSipHash-1-3 with two departures: four units below 256 share a word, which saves every other round of an ASCII key, and
// the second half of the output is the other half of the final state, not three more rounds; no output is ever shown.
// Lone surrogates are units like any other. The round stands five times: a call would cost what the hash does.
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
  let i = 0
  for (; i + 4 <= length; i += 4) {
    const a = key.charCodeAt(i)
    const b = key.charCodeAt(i + 1)
    const c = key.charCodeAt(i + 2)
    const d = key.charCodeAt(i + 3)
    if ((a | b | c | d) > 0xff) break
    const word = a | (b << 8) | (c << 16) | (d << 24)
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
  for (; i <= length; i += 2) {
    // The last word holds the odd unit, if any, and the whole length: it tells how many units the words before it hold.
    const pair = i + 2 <= length
    const word = pair ? key.charCodeAt(i) | (key.charCodeAt(i + 1) << 16) : (length << 16) | (i < length ? key.charCodeAt(i) : 0)
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
  // Three rounds to finish.
  v2 ^= 0xee
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
  low = v1 ^ v3
  high = v0 ^ v2
}

/** Random numbers that are drawn together: a draw costs as much as the rest of a limiter. */
const DRAWN = 256
let drawn = new Int32Array(0)
let left = 0

/** Two random 32-bit numbers. */
export function randomSecret(): readonly [number, number] {
  if (left === 0) {
    drawn = crypto.getRandomValues(new Int32Array(DRAWN))
    left = DRAWN
  }
  const pair = [drawn[left - 1] as number, drawn[left - 2] as number] as const
  drawn.fill(0, left - 2, left)
  left -= 2
  return pair
}
