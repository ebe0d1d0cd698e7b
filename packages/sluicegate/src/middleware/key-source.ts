import { type Awaitable, answersOf, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { address } from '../keys/address.js'
import { fittedKey } from '../keys/fitted-key.js'
import type { RequestFacts } from '../keys/key-reader.js'
import { type KeyReader, keyOf } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'

/** What a function may give as the key of a request; a number and its text are one. What is null, undefined or empty is none. */
export type GivenKey = string | number | bigint | readonly (string | number | bigint)[] | null | undefined

/** Who one limit counts: a key reader such as `address()`, or a function of the framework's own request. */
export type SingleKeySource<Request> = KeyReader<NoInfer<Request>> | ((request: Request) => Awaitable<GivenKey>)

/** The same; of `allOf` also an array, one for each of its policies. */
export type KeySource<Request> = SingleKeySource<Request> | readonly SingleKeySource<Request>[]

/** Who is limited where nothing else is said. */
export const socketAddress: KeyReader = address()

/** The key of a request. */
export type KeyFinder<Request> = (facts: RequestFacts, request: Request) => Awaitable<Key>

/**
 * Default the address of the socket.
 *
 * @throws {PolicyError} `OPTION_INVALID`; the finder throws `KEY_MISSING` where a request has no key, and never makes one up that
 * many would share
 */
export function keyFinder<Request>(source: KeySource<Request> = socketAddress): KeyFinder<Request> {
  if (isSeveral(source)) {
    const finders = source.map(keyFinder)
    return (facts, request) => answersOf(finders, (finder) => finder(facts, request) as Awaitable<string>)
  }
  if (typeof source === 'function') return (_, request) => chained(source(request), fitted)
  if (typeof source === 'object' && source !== null && typeof source.read === 'function') {
    return (facts, request) => keyOf(source, facts, request)
  }
  throw new PolicyError(
    'OPTION_INVALID',
    'key',
    source,
    'must be a key reader such as address(), a function of the request, or an array of them',
  )
}

/** All readers that a source asks, those within others included. */
export function readersIn<Request>(source: KeySource<Request>): KeyReader<Request>[] {
  if (isSeveral(source)) return source.flatMap((one) => readersIn(one))
  if (typeof source === 'function') return []
  return [source, ...(source.readers ?? []).flatMap((one) => readersIn(one))]
}

function isSeveral<Request>(source: KeySource<Request>): source is readonly SingleKeySource<Request>[] {
  return Array.isArray(source)
}

function fitted(key: unknown): Key {
  if (typeof key === 'string' && key.length > 0) return fittedKey(key)
  if (typeof key === 'bigint' || Number.isFinite(key)) return String(key)
  if (Array.isArray(key) && key.length > 0) return key.map((one) => fitted(one) as string)
  if (key === undefined || key === null || key === '' || Array.isArray(key)) {
    throw new PolicyError(
      'KEY_MISSING',
      'key',
      key,
      'the function gave no key for this request: return a string, or let skip pass such requests',
    )
  }
  throw new PolicyError('KEY_INVALID', 'key', key, 'the function gave what is no key: return a string, a finite number or a bigint')
}
