const DIGITS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/']
/** Two digits at a time, made for the first key. */
let pairs: readonly string[] | undefined

/**
 * A key as the value of `pk`: a keyed hash of 64 bits as a byte sequence, such as `:cHsdsRa894A=:`. An unkeyed hash of an address could be
 * reversed by hashing all addresses.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, section 6.1; RFC 9651, section 3.3.5; RFC 4648, section 4.
 */
export function partitionKey(key: string, secret: SipSecret): string {
  pairs ??= DIGITS.flatMap((first) => DIGITS.map((second) => first + second))
  const [low, high] = sipHash(key, secret)
  // Eight bytes, the lowest first, are 64 bits from the highest on: five pairs of digits and four bits.
  const a = reversed(low)
  const b = reversed(high)
  const three = `${pairs[a >>> 20]}${pairs[(a >>> 8) & 4095]}${pairs[((a & 255) << 4) | (b >>> 28)]}`
  return `:${three}${pairs[(b >>> 16) & 4095]}${pairs[(b >>> 4) & 4095]}${DIGITS[(b & 15) << 2]}=:`
}

function reversed(word: number): number {
  return (((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0
}

// SipHash-2-4 of a text's UTF-16 units, low byte first, under a secret of 128 bits. Unlike the fingerprint of keys, whose output is never
// visible, this hash is shown to clients: the secret cannot be found by trial, and two and four rounds have withstood analysis better than
// one and three. It is synchronous, unlike HMAC of the Web Crypto API.
//
// Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.

/** 128 bits as four unsigned 32-bit words, the lowest first. */
export type SipSecret = readonly [number, number, number, number]

/** v0 to v3 as halves of 32 bits, the low one first. Shared by all calls, which are synchronous. */
const v = new Int32Array(8)

/** The hash: its two halves of 32 bits, the low one first. */
export function sipHash(text: string, [k0, k1, k2, k3]: SipSecret): readonly [low: number, high: number] {
  v[0] = k0 ^ 0x70736575
  v[1] = k1 ^ 0x736f6d65
  v[2] = k2 ^ 0x6e646f6d
  v[3] = k3 ^ 0x646f7261
  v[4] = k0 ^ 0x6e657261
  v[5] = k1 ^ 0x6c796765
  v[6] = k2 ^ 0x79746573
  v[7] = k3 ^ 0x74656462
  const { length } = text
  let i = 0
  for (; i + 4 <= length; i += 4) {
    absorb(pair(text, i), pair(text, i + 2))
  }
  // The last word: up to three units and, in its highest byte, the number of bytes.
  const rest = length - i
  const low = rest >= 2 ? pair(text, i) : rest === 1 ? text.charCodeAt(i) : 0
  const last = rest === 3 ? text.charCodeAt(i + 2) : 0
  absorb(low, last | (((length * 2) & 0xff) << 24))
  v[4] = (v[4] as number) ^ 0xff
  for (let round = 0; round < 4; round++) sipRound()
  return [folded(0), folded(1)]
}

/** A random secret, or the one of 32 hexadecimal digits, two for each byte. */
export function sipSecret(hex?: string): SipSecret {
  if (hex === undefined) return [...crypto.getRandomValues(new Uint32Array(4))] as unknown as SipSecret
  const bytes = new DataView(Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)).buffer)
  return [0, 4, 8, 12].map((at) => bytes.getUint32(at, true)) as unknown as SipSecret
}

function pair(text: string, at: number): number {
  return text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16)
}

/** The exclusive or of the low or the high halves of v0 to v3. */
function folded(half: 0 | 1): number {
  return ((v[half] as number) ^ (v[2 + half] as number) ^ (v[4 + half] as number) ^ (v[6 + half] as number)) >>> 0
}

function absorb(low: number, high: number): void {
  v[6] = (v[6] as number) ^ low
  v[7] = (v[7] as number) ^ high
  sipRound()
  sipRound()
  v[0] = (v[0] as number) ^ low
  v[1] = (v[1] as number) ^ high
}

/** One round. A 64-bit sum carries if the unsigned sum of the low halves is below what was added. */
function sipRound(): void {
  let a = v[0] as number
  let b = v[1] as number
  let c = v[2] as number
  let d = v[3] as number
  let e = v[4] as number
  let f = v[5] as number
  let g = v[6] as number
  let h = v[7] as number
  let low: number
  // v0 += v1; v1 <<<= 13; v1 ^= v0; v0 <<<= 32
  low = (a + c) | 0
  b = (b + d + (low >>> 0 < c >>> 0 ? 1 : 0)) | 0
  a = low
  low = (c << 13) | (d >>> 19)
  d = ((d << 13) | (c >>> 19)) ^ b
  c = low ^ a
  ;[a, b] = [b, a]
  // v2 += v3; v3 <<<= 16; v3 ^= v2
  low = (e + g) | 0
  f = (f + h + (low >>> 0 < g >>> 0 ? 1 : 0)) | 0
  e = low
  low = (g << 16) | (h >>> 16)
  h = ((h << 16) | (g >>> 16)) ^ f
  g = low ^ e
  // v0 += v3; v3 <<<= 21; v3 ^= v0
  low = (a + g) | 0
  b = (b + h + (low >>> 0 < g >>> 0 ? 1 : 0)) | 0
  a = low
  low = (g << 21) | (h >>> 11)
  h = ((h << 21) | (g >>> 11)) ^ b
  g = low ^ a
  // v2 += v1; v1 <<<= 17; v1 ^= v2; v2 <<<= 32
  low = (e + c) | 0
  f = (f + d + (low >>> 0 < c >>> 0 ? 1 : 0)) | 0
  e = low
  low = (c << 17) | (d >>> 15)
  d = ((d << 17) | (c >>> 15)) ^ f
  c = low ^ e
  v[0] = a
  v[1] = b
  v[2] = c
  v[3] = d
  v[4] = f
  v[5] = e
  v[6] = g
  v[7] = h
}
