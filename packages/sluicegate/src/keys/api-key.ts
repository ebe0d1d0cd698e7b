import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import { base64Url } from './fitted-key.js'
import { type KeyReader, type ReaderOptions, withOtherwise } from './key-reader.js'
import { checkedHeaderName } from './readers.js'
import { hmacSha256, unitBytes } from './sha256.js'

/** Options of {@link apiKey}. */
export interface ApiKeyOptions<Request = unknown> extends ReaderOptions<Request> {
  /**
   * Default `x-api-key`. With `authorization` the key is the token of the scheme `Bearer`, the first word after it; other schemes have
   * none.
   */
  readonly header?: string
  /**
   * For API keys that can be guessed: without it, a key that leaks could be matched against candidates. At least 16 characters, the same in
   * all processes and after every restart, or each counts separately.
   */
  readonly secret?: string
}

/** Of the digest: 128 bits make collisions negligible, and an attack from half of a digest useless. */
const DIGEST_BYTES = 16
const LEAST_SECRET = 16
/** What follows the first word is ignored: authentication reads only the token, and with each suffix a client would have another budget. */
const BEARER = /^bearer\s+([^\s,]+)/i

/**
 * An API key as the key: 128 bits of its HMAC-SHA-256, such as `key:Lz5zJ2...`, so that no secret is stored or logged. An API key of at
 * least 128 random bits cannot be found from it; for others use `secret`.
 *
 * It does not verify the API key. Clients can make up any number of them, each with a budget of its own: reject unknown ones before they
 * are counted, or count the address as well. A signed token (JWT), of which a client can have many, is not an API key: use {@link subject}.
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
    // The value is not part of the error: messages are logged.
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

/**
 * The scheme is case-insensitive: otherwise a client would have a budget for each spelling. Source: RFC 9110, section 11.4; RFC 6750,
 * section 2.1.
 */
function bearerToken(value: string | undefined): string | undefined {
  return value === undefined ? undefined : BEARER.exec(value.trim())?.[1]
}
