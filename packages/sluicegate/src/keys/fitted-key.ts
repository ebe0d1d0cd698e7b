import { MAX_KEY_LENGTH } from '../arguments.js'
import { sha256, unitBytes } from './sha256.js'

const DIGEST = /^sha256:[\w-]{43}$/

/**
 * A key that a limiter takes: one above 1,024 units is replaced by `sha256:` and the digest of it all. So is one that looks like such a digest
 * by itself, so that two keys that differ anywhere stay two keys: the same would be a collision of SHA-256. Hence once is enough: the digest of
 * a digest is another key.
 */
export function fittedKey(key: string): string {
  return key.length <= MAX_KEY_LENGTH && !DIGEST.test(key) ? key : `sha256:${base64Url(sha256(unitBytes(key)))}`
}

/** What stands between the parts of a composed key. */
export const JOINT = '|'
const SPECIAL = /[|\\]/g

/**
 * A key, or a part of one, with a backslash before each `|` and each backslash: a `|` without one is then always a joint of {@link compose},
 * and no value makes a key of one reader look like one of several.
 */
export function escapedPart(part: string): string {
  return part.includes(JOINT) || part.includes('\\') ? part.replace(SPECIAL, '\\$&') : part
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Bytes as text without padding. Source: RFC 4648, section 5. */
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
