import { MAX_KEY_LENGTH } from '../arguments.js'
import { PolicyError } from '../errors.js'
import { fittedKey } from './fitted-key.js'

/** What keys and headers need to know of a request: made by each adapter, never a framework's own object. */
export interface RequestFacts {
  /** As it stands in the request line: `GET`. */
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** The pattern that matched, such as `/users/:id`, where the framework knows it. */
  readonly route: string | undefined
  /** The address of the socket: of the client, or of the proxy nearest to here. A Unix socket has none. */
  readonly remoteAddress: string | undefined
  /** A header by its lower-case name; several lines of it joined by `, `. */
  header(name: string): string | undefined
  /** Where it can be known: calls `tell` once the response has ended or its client has gone. */
  whenGone?(tell: () => void): void
}

/**
 * Says who a request is counted for. It is an object, so that a middleware's `key` tells it from a function of the framework's own
 * request. `address()`, `apiKey()` and so on make them, and one of your own is as good.
 */
export interface KeyReader<Request = unknown> {
  /** For messages: `apiKey(x-api-key)`. */
  readonly name: string
  /** Those that it asks in its turn, so that others can look through them. */
  readonly readers?: readonly KeyReader<Request>[]
  /**
   * The key, or undefined where the request has none.
   *
   * @param request the framework's own request.
   */
  read(facts: RequestFacts, request: Request): string | undefined
}

/** What every reader can be told. */
export interface ReaderOptions<Request = unknown> {
  /** Who is asked where a request has no such key. Without one the request has no key, which {@link keyOf} refuses. */
  readonly otherwise?: KeyReader<Request>
}

/**
 * The key of a request, as a limiter takes it: not empty, and at most 1,024 units.
 *
 * @throws {PolicyError} `KEY_MISSING` where the reader finds none: a key that many would share is never made up.
 */
export function keyOf<Request>(reader: KeyReader<Request>, facts: RequestFacts, request: Request): string {
  const key = reader.read(facts, request)
  // What is not too long the reader has made so: a digest of its own stays what it is.
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

/** The reader, and behind it what it is to ask where it finds nothing. */
export function withOtherwise<Request>(reader: KeyReader<Request>, otherwise: KeyReader<Request> | undefined): KeyReader<Request> {
  if (otherwise === undefined) return Object.freeze(reader)
  checkReader('otherwise', otherwise)
  return Object.freeze({
    name: `${reader.name} or ${otherwise.name}`,
    readers: [reader, otherwise],
    read: (facts, request) => reader.read(facts, request) ?? otherwise.read(facts, request),
  } satisfies KeyReader<Request>)
}
