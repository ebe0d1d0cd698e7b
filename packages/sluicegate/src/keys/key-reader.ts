import { PolicyError } from '../errors.js'
import { MAX_KEY_LENGTH } from '../key.js'
import { fittedKey } from './fitted-key.js'

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
  /**
   * The key; undefined for a request without one.
   *
   * @param request the framework's own request.
   */
  read(facts: RequestFacts, request: Request): string | undefined
}

/** Options of every reader. */
export interface ReaderOptions<Request = unknown> {
  /** The reader for requests without such a key. Without one, {@link keyOf} throws for them. */
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

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkReader(option: string, reader: unknown): void {
  const { name, read } = (typeof reader === 'object' && reader !== null ? reader : {}) as Partial<KeyReader>
  if (typeof read === 'function' && typeof name === 'string') return
  const mend = 'must be a key reader such as address(), or subject((request) => ...) for a function'
  throw new PolicyError('OPTION_INVALID', option, reader, mend)
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
