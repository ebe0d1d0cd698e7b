import { PolicyError } from '../errors.js'
import { MAX_KEY_LENGTH } from '../key.js'
import { checkOptions, isRequest } from '../options/option-checks.js'
import { sha256, unitBytes } from './sha256.js'

/** The facts of a request that keys are made of. Adapters make them; a framework's own object is never passed. */
export interface RequestFacts {
  /** As in the request line: `GET`. */
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** The pattern that matched, such as `/users/:id`, if the framework knows it. */
  readonly route: string | undefined
  /** The address of the socket: of the client, or of the nearest proxy. Undefined for a Unix socket. */
  readonly remoteAddress: string | undefined
  /** A header by its lower-case name; several lines are joined by `, `. */
  header(name: string): string | undefined
  /** Calls `callback` once the response has ended or the client has disconnected, if the adapter can know it. */
  whenGone?(callback: () => void): void
}

/**
 * Finds the key that a request is counted by. It is an object, so that middleware can tell it from a function of the framework's own
 * request. `address()`, `apiKey()` and others return one; you may write your own.
 */
export interface KeyReader<Request = unknown> {
  /** For messages: `apiKey(x-api-key)`. */
  readonly name: string
  /** The readers that it uses, for checks. */
  readonly readers?: readonly KeyReader<Request>[]
  /** Of credentials: `WWW-Authenticate` of the 401 to a request without them, such as `Bearer`. */
  readonly challenge?: string
  /**
   * The key; undefined for a request without one.
   *
   * @param request the framework's own request.
   */
  read(facts: RequestFacts, request: Request): string | undefined
}

/** Options of every reader. */
export interface ReaderOptions<Request = unknown> {
  /**
   * The reader for requests without such a key. Without one, {@link keyOf} throws for them.
   *
   * @defaultValue none
   * @example header('x-user', { otherwise: address() })
   */
  readonly otherwise?: KeyReader<Request>
}

/**
 * The key of a request as a limiter takes it: 1 to 1,024 UTF-16 units.
 *
 * @throws {PolicyError} `KEY_MISSING` if the reader finds none: a key that many requests would share is never made up.
 */
export function keyOf<Request>(reader: KeyReader<Request>, facts: RequestFacts, request: Request): string {
  const key = reader.read(facts, request)
  // Readers return keys that fit already; a digest must not be digested again.
  if (typeof key === 'string' && key.length > 0) return key.length <= MAX_KEY_LENGTH ? key : fittedKey(key)
  throw new PolicyError(
    'KEY_MISSING',
    'key',
    key,
    `${reader.name} found no key in this request; give it { otherwise } or let no such request come here`,
  )
}

/**
 * Options of a reader; a request in their place means that the reader itself was given as a key.
 *
 * @param of the function that takes them: `apiKey()`.
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 */
export function readerOptions<Options>(options: Options, known: readonly string[], example: string, of: string): Options {
  if (typeof options === 'object' && options !== null && isRequest(options)) {
    throw new PolicyError(
      'OPTION_INVALID',
      'key',
      options,
      `must be what ${of} returns: write key: ${of} instead of key: ${of.slice(0, -2)}`,
    )
  }
  return checkOptions(options, known, example, of)
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkReader(option: string, reader: unknown): void {
  const { name, read } = (typeof reader === 'object' && reader !== null ? reader : {}) as Partial<KeyReader>
  if (typeof read === 'function' && typeof name === 'string') return
  const mend = 'must be a key reader such as address(), or subject((request) => ...) for a function'
  throw new PolicyError('OPTION_INVALID', option, reader, mend)
}

/**
 * The name in lower case. Source: RFC 9110, section 5.1.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function checkedHeaderName(option: string, name: unknown): string {
  if (typeof name === 'string' && /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}$/.test(name)) return name.toLowerCase()
  throw new PolicyError('OPTION_INVALID', option, name, "must be the name of a header, such as 'x-api-key'")
}

/** The reader, with the one to ask where it finds nothing. */
export function withOtherwise<Request>(reader: KeyReader<Request>, otherwise: KeyReader<Request> | undefined): KeyReader<Request> {
  if (otherwise === undefined) return Object.freeze(reader)
  checkReader('otherwise', otherwise)
  return Object.freeze({
    name: `${reader.name} or ${otherwise.name}`,
    readers: [reader, otherwise],
    read: (facts, request) => reader.read(facts, request) ?? otherwise.read(facts, request),
  } satisfies KeyReader<Request>)
}

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
