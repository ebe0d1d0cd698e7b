import { type SipSecret, sipHash } from './sip-hash.js'

const DIGITS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/']
/** Two digits at a time, made when the first key is told. */
let pairs: readonly string[] | undefined

/**
 * A key as `pk` may show it: a keyed hash of 64 bits as a byte sequence, such as `:cHsdsRa894A=:`. An unkeyed hash of an address could be
 * turned back by hashing them all.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, section 6.1; RFC 9651, section 3.3.5; RFC 4648, section 4.
 */
export function partitionKey(key: string, secret: SipSecret): string {
  pairs ??= DIGITS.flatMap((first) => DIGITS.map((second) => first + second))
  const [low, high] = sipHash(key, secret)
  // Eight bytes, the lowest first, are sixty-four bits from the highest on: five pairs of digits and four bits.
  const a = reversed(low)
  const b = reversed(high)
  const three = `${pairs[a >>> 20]}${pairs[(a >>> 8) & 4095]}${pairs[((a & 255) << 4) | (b >>> 28)]}`
  return `:${three}${pairs[(b >>> 16) & 4095]}${pairs[(b >>> 4) & 4095]}${DIGITS[(b & 15) << 2]}=:`
}

function reversed(word: number): number {
  return (((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)) >>> 0
}
