import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import { base64Url } from './fitted-key.js'
import { type KeyReader, type ReaderOptions, withOtherwise } from './key-reader.js'
import { checkedHeaderName } from './readers.js'
import { hmacSha256, unitBytes } from './sha256.js'

/** Options of {@link apiKey}. */
export interface ApiKeyOptions<Request = unknown> extends ReaderOptions<Request> {
  /** Default `x-api-key`. Of `authorization` it is the token of the scheme `Bearer`, the first word behind it; other schemes have none. */
  readonly header?: string
  /**
   * With it, nobody who sees a key can try out which API key it may be of: for API keys that can be guessed. The same in all processes
   * and after every restart, or each counts for itself; at least 16 characters.
   */
  readonly secret?: string
}

/** Of the digest: as good as no two API keys share it, and half of one is of no use to go on from. */
const DIGEST_BYTES = 16
const LEAST_SECRET = 16
/** What stands behind the first word changes nothing: guards read that alone, and each ending would have a budget. */
const BEARER = /^bearer\s+([^\s,]+)/i

/**
 * An API key as the key, not itself but its HMAC-SHA-256, 128 bits of it: `key:Lz5zJ2...`, so that no secret stands in a store, a log
 * or a list of busy keys. An API key of 128 random bits or more cannot be found from it; for others there is `secret`.
 *
 * It does not check the API key. Anybody can make up as many as he likes, and each has a budget of its own: refuse unknown ones
 * before they are counted, or count the address as well. Nor is a signed token (JWT) one, of which a client can have many: {@link subject}
 * is for that.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example
 * apiKey({ header: 'x-api-key', otherwise: address({ trustedHops: 1 }) })
 */
export function apiKey<Request = unknown>(options: ApiKeyOptions<Request> = {}): KeyReader<Request> {
  checkOptions(options, ['header', 'secret', 'otherwise'], "{ header: 'x-api-key' }", 'apiKey()')
  const { header: name = 'x-api-key', secret = 'sluicegate: keys of API keys', otherwise } = options
  const header = checkedHeaderName('header', name)
  if (typeof secret !== 'string' || secret.length < LEAST_SECRET) {
    // The value is not repeated: messages are logged.
    throw new PolicyError('OPTION_INVALID', 'secret', typeof secret, `must be a string of at least ${LEAST_SECRET} characters`)
  }
  const digest = hmacSha256(unitBytes(secret))
  const reader: KeyReader<Request> = {
    name: `apiKey(${header})`,
    read(facts) {
      const value = facts.header(header)
      const given = header === 'authorization' ? bearerToken(value) : value?.trim()
      return given === undefined || given === '' ? undefined : `key:${base64Url(digest(unitBytes(given)).subarray(0, DIGEST_BYTES))}`
    },
  }
  return withOtherwise(reader, otherwise)
}

/** One token however its scheme is spelt: else a client had a budget for each spelling. Source: RFC 9110, section 11.4; RFC 6750, section 2.1. */
function bearerToken(value: string | undefined): string | undefined {
  return value === undefined ? undefined : BEARER.exec(value.trim())?.[1]
}
