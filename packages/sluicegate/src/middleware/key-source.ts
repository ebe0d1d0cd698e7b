import { type Awaitable, answersOf, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { address } from '../keys/address.js'
import { fittedKey, type KeyReader, keyOf, type RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'

/** What a function may return as the key of a request. A number and its text are the same key. Null, undefined and the empty string are no key. */
export type GivenKey = string | number | bigint | readonly (string | number | bigint)[] | null | undefined

/** What one limit counts requests by: a key reader such as `address()`, or a function of the framework's own request. */
export type SingleKeySource<Request> = KeyReader<NoInfer<Request>> | ((request: Request) => Awaitable<GivenKey>)

/** A single source; for `allOf` also an array, one for each of its policies. */
export type KeySource<Request> = SingleKeySource<Request> | readonly SingleKeySource<Request>[]

/** The default key. */
export const socketAddress: KeyReader = address()

/** The key of a request. */
export type KeyFinder<Request> = (facts: RequestFacts, request: Request) => Awaitable<Key>

/**
 * Makes the key finder of an option. It throws `KEY_MISSING` for a request without a key, and never makes up a key that many requests would share.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function keyFinder<Request>(source: KeySource<Request> = socketAddress): KeyFinder<Request> {
  if (isSeveral(source)) {
    const finders = source.map(keyFinder)
    return (facts, request) => answersOf(finders, (finder) => finder(facts, request) as Awaitable<string>)
  }
  if (typeof source === 'function') return (_, request) => chained(source(request), checkedKey)
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

/** All readers of a source, with the readers that these use. */
export function readersIn<Request>(source: KeySource<Request>): KeyReader<Request>[] {
  if (isSeveral(source)) return source.flatMap((one) => readersIn(one))
  if (typeof source === 'function') return []
  return [source, ...(source.readers ?? []).flatMap((one) => readersIn(one))]
}

function isSeveral<Request>(source: KeySource<Request>): source is readonly SingleKeySource<Request>[] {
  return Array.isArray(source)
}

function checkedKey(key: unknown): Key {
  if (typeof key === 'string' && key.length > 0) return fittedKey(key)
  if (typeof key === 'bigint' || Number.isFinite(key)) return String(key)
  if (Array.isArray(key) && key.length > 0) return key.map((one) => checkedKey(one) as string)
  if (key === undefined || key === null || key === '' || Array.isArray(key)) {
    throw new PolicyError(
      'KEY_MISSING',
      'key',
      key,
      'the function returned no key for this request: return a string, or use skip for requests without a key',
    )
  }
  throw new PolicyError(
    'KEY_INVALID',
    'key',
    key,
    'the function returned something that is not a key: return a string, a finite number or a bigint',
  )
}
