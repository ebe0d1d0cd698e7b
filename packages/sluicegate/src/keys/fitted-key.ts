import { MAX_KEY_LENGTH } from '../arguments.js'
import { base64Url } from './base64-url.js'
import { sha256, unitBytes } from './sha256.js'

/**
 * A key that a limiter takes: one above 1,024 units is replaced by `sha256:` and the digest of it all. Two long keys that differ
 * anywhere stay two keys, and nobody can make another's: that would be a collision of SHA-256.
 */
export function fittedKey(key: string): string {
  return key.length <= MAX_KEY_LENGTH ? key : `sha256:${base64Url(sha256(unitBytes(key)))}`
}
