import { MAX_KEY_LENGTH } from '../key.js'
import { sha256, unitBytes } from './sha256.js'

const DIGEST = /^sha256:[\w-]{43}$/

/**
 * A key that a limiter accepts: a key of more than 1,024 UTF-16 units is replaced by `sha256:` and its digest. So is a key that looks like
 * such a digest, so that two different keys never become one, apart from collisions of SHA-256. Apply it once: the digest of a digest is
 * another key.
 */
export function fittedKey(key: string): string {
  return key.length <= MAX_KEY_LENGTH && !DIGEST.test(key) ? key : `sha256:${base64Url(sha256(unitBytes(key)))}`
}

/** Separates the parts of a composed key. */
export const JOINT = '|'
const SPECIAL = /[|\\]/g

/**
 * A key, or a part of one, with a backslash before each `|` and each backslash: an unescaped `|` is then always a separator of {@link
 * compose}, and no value makes the key of one reader equal to one of several.
 */
export function escapedPart(part: string): string {
  return part.includes(JOINT) || part.includes('\\') ? part.replace(SPECIAL, '\\$&') : part
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Bytes as base64url without padding. Source: RFC 4648, section 5. */
export function base64Url(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i += 3) {
    const bits = ((bytes[i] as number) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0)
    const left = bytes.length - i
    text += (DIGITS[bits >> 18] as string) + DIGITS[(bits >> 12) & 63]
    if (left > 1) text += DIGITS[(bits >> 6) & 63]
    if (left > 2) text += DIGITS[bits & 63]
  }
  return text
}
