import { MAX_KEY_LENGTH } from '../arguments.js'
import { base64Url } from './base64-url.js'
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
