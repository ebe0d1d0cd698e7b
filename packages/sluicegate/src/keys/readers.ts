import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import { clientNetwork } from './address.js'
import {
  base64Url,
  checkedHeaderName,
  checkReader,
  escapedPart,
  fittedKey,
  JOINT,
  type KeyReader,
  type ReaderOptions,
  readerOptions,
  withOtherwise,
} from './key-reader.js'
import { hmacSha256, unitBytes } from './sha256.js'

/**
 * A header's value as the key: `header:x-tenant:acme`. Clients can send any value: use it for headers that your own proxy sets and
 * overwrites, or beside other limits.
 *
 * In a header in which proxies name the client, such as `x-real-ip`, an address is counted by its network as {@link address} does, of a list
 * the last one. A request without the header, or with an empty one, has no key.
 *
 * @throws {PolicyError} `OPTION_INVALID` for an invalid name, `OPTION_UNKNOWN`
 */
export function header<Request = unknown>(name: string, options: ReaderOptions<Request> = {}): KeyReader<Request> {
  const { otherwise } = checkOptions(options, ['otherwise'], '{ otherwise: address() }', 'header()')
  const lowerCase = checkedHeaderName('name', name)
  const prefix = `header:${lowerCase}:`
  const namesAddress = ADDRESS_HEADERS.has(lowerCase)
  const reader: KeyReader<Request> = {
    name: `header(${lowerCase})`,
    read(facts) {
      const value = facts.header(lowerCase)?.trim()
      if (value === undefined || value === '') return undefined
      return fittedKey(escapedPart(prefix + (namesAddress ? (networkOf(value) ?? value) : value)))
    },
  }
  return withOtherwise(reader, otherwise)
}

/** Headers in which proxies and CDNs name the client. */
const ADDRESS_HEADERS: ReadonlySet<string> = new Set(
  (
    'cf-connecting-ip cf-connecting-ipv6 client-ip cloudfront-viewer-address do-connecting-ip fastly-client-ip fly-client-ip forwarded ' +
    'true-client-ip x-appengine-user-ip x-azure-clientip x-client-ip x-cluster-client-ip x-envoy-external-address x-forwarded ' +
    'x-forwarded-for x-nf-client-connection-ip x-original-forwarded-for x-real-ip x-vercel-forwarded-for'
  ).split(' '),
)
const networkOf = clientNetwork()

const METHODS = new Map([
  // HEAD is answered like GET without the body: its own budget would double that of a route.
  ['HEAD', 'method:GET'],
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE', 'CONNECT'].map((name) => [name, `method:${name}`] as const),
])

/**
 * The method as the key: `method:POST`. HEAD counts as GET. Methods outside RFC 9110, PATCH and QUERY share `method:other`: clients can
 * make up any number of them.
 *
 * @throws {PolicyError} `OPTION_INVALID` for an argument.
 */
export function method(): KeyReader
export function method(...given: readonly unknown[]): KeyReader {
  refuseGiven(
    'method()',
    given,
    'it is the method of a request: leave out the argument, and give a limit of its own to the routes to limit',
  )
  return METHOD
}

const METHOD: KeyReader = Object.freeze({
  name: 'method()',
  read: ({ method }) => METHODS.get(method) ?? 'method:other',
} satisfies KeyReader)

/**
 * The route that matched as the key: `route:/users/:id`. It is the pattern and never the path, of which clients can make up any number.
 * Requests without a matching route, or before routing, share the key `route`.
 *
 * @throws {PolicyError} `OPTION_INVALID` for an argument.
 */
export function route(): KeyReader
export function route(...given: readonly unknown[]): KeyReader {
  refuseGiven(
    'route()',
    given,
    'it is the route that a request matched: leave out the argument, and mount the middleware on the route to limit',
  )
  return ROUTE
}

/** A route or a method that is named would limit nothing but itself, people think. @throws {PolicyError} `OPTION_INVALID` */
function refuseGiven(reader: string, given: readonly unknown[], mend: string): void {
  if (given.length > 0) throw new PolicyError('OPTION_INVALID', reader, given[0], mend)
}

const ROUTE: KeyReader = Object.freeze({
  name: 'route()',
  read: ({ route }) => (route === undefined || route === '' ? 'route' : fittedKey(escapedPart(`route:${route}`))),
} satisfies KeyReader)

/** The subject of a request. Null, undefined and the empty string are none. */
export type Subject = string | number | bigint | null | undefined

/**
 * The subject of a token, or the user of a session, that was verified before: `subject:42`. `read` gets the framework's own request.
 *
 * A number and its text are one subject. Other types throw: the text of an object would be the same for all.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`; at a request `KEY_INVALID`
 * @example
 * subject((request: { user?: { id: string } }) => request.user?.id, { otherwise: address() })
 */
export function subject<Request = unknown>(read: (request: Request) => Subject, options: ReaderOptions<Request> = {}): KeyReader<Request> {
  const { otherwise } = checkOptions(options, ['otherwise'], '{ otherwise: address() }', 'subject()')
  if (typeof read !== 'function') throw new PolicyError('OPTION_INVALID', 'read', read, 'must be a function of the request')
  const reader: KeyReader<Request> = {
    name: 'subject()',
    challenge: 'Bearer',
    read(_, request) {
      const found = textOf(read(request))
      return found === undefined ? undefined : fittedKey(escapedPart(`subject:${found}`))
    },
  }
  return withOtherwise(reader, otherwise)
}

function textOf(found: unknown): string | undefined {
  if (found === undefined || found === null || found === '') return undefined
  if (typeof found === 'string') return found
  if (typeof found === 'bigint' || (typeof found === 'number' && Number.isFinite(found))) return String(found)
  throw new PolicyError(
    'KEY_INVALID',
    'subject',
    found,
    'must be a string, a finite number or a bigint; undefined for a request without a subject',
  )
}

const MOST_READERS = 8

/**
 * Several keys as one: `203.0.113.7|method:POST|route:/login`. Different parts always make different keys, and no key of a single reader
 * equals a composed one: a `|` or a backslash within a part is escaped. If one part has no key there is none; parts have their own
 * `otherwise`.
 *
 * @param readers 2 to 8 of them.
 * @throws {PolicyError} `OPTION_INVALID`
 * @example
 * compose(address({ trustedHops: 1 }), method(), route())
 */
export function compose<Request = unknown>(...readers: readonly KeyReader<Request>[]): KeyReader<Request> {
  if (readers.length < 2 || readers.length > MOST_READERS) {
    throw new PolicyError('OPTION_INVALID', 'readers', readers, `must be 2 to ${MOST_READERS} key readers`)
  }
  for (const [i, reader] of readers.entries()) checkReader(`readers[${i}]`, reader)
  return Object.freeze({
    name: `compose(${readers.map(({ name }) => name).join(', ')})`,
    readers,
    read(facts, request) {
      let key = ''
      for (let i = 0; i < readers.length; i++) {
        const part = readers[i]?.read(facts, request)
        if (part === undefined || part === '') return undefined
        key += (i > 0 ? JOINT : '') + escapedPart(part)
      }
      return fittedKey(key)
    },
  } satisfies KeyReader<Request>)
}

/** Options of {@link apiKey}. */
export interface ApiKeyOptions<Request = unknown> extends ReaderOptions<Request> {
  /**
   * The header of the key. With `authorization` the key is the token of the scheme `Bearer`; other schemes have none.
   *
   * @defaultValue `'x-api-key'`
   * @example apiKey({ header: 'authorization' })
   */
  readonly header?: string
  /**
   * For API keys that can be guessed: at least 16 characters, the same in all processes and after every restart.
   *
   * @defaultValue none
   * @example apiKey({ secret: 'a secret of 16 characters or more' })
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
 * It does not verify the API key. Clients can make up any number of them, each with its own budget: reject unknown ones before they
 * are counted, or count the address as well. A signed token (JWT), of which a client can have many, is not an API key: use {@link subject}.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example
 * apiKey({ header: 'x-api-key', otherwise: address({ trustedHops: 1 }) })
 */
export function apiKey<Request = unknown>(options: ApiKeyOptions<Request> = {}): KeyReader<Request> {
  const own = readerOptions(options, ['header', 'secret', 'otherwise'], "{ header: 'x-api-key' }", 'apiKey()')
  const { header: name = 'x-api-key', secret = 'sluicegate: keys of API keys', otherwise } = own
  const header = checkedHeaderName('header', name)
  if (typeof secret !== 'string' || secret.length < LEAST_SECRET) {
    // The value is not part of the error: messages are logged.
    throw new PolicyError('OPTION_INVALID', 'secret', typeof secret, `must be a string of at least ${LEAST_SECRET} characters`)
  }
  const digest = hmacSha256(unitBytes(secret))
  const reader: KeyReader<Request> = {
    name: `apiKey(${header})`,
    challenge: header === 'authorization' ? 'Bearer' : 'ApiKey',
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
