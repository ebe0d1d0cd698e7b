import { type Awaitable, answersOf, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { isByName, type KeysByName, MAX_KEY_LENGTH } from '../key.js'
import { address } from '../keys/address.js'
import { isWholeIpv6 } from '../keys/ip-address.js'
import { fittedKey, type KeyReader, type RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'
import { warnOnce } from '../warn-once.js'

type GivenText = string | number | bigint

/**
 * What a function may return as the key of a request; of `levels` also a key for each, by name. A number and its text are the same key. Null,
 * undefined and the empty string are no key.
 */
export type GivenKey = GivenText | readonly GivenText[] | { readonly [name: string]: GivenText | null | undefined } | null | undefined

/** What one limit counts requests by: a key reader such as `address()`, or a function of the framework's own request. */
export type SingleKeySource<Request> = KeyReader<NoInfer<Request>> | ((request: Request) => Awaitable<GivenKey>)

/** Of requests without a key. */
export type MissingKeyOption<Request> = 'deny' | 'skip' | SingleKeySource<Request>

/** A single source; for `allOf` also an array, one for each of its policies. */
export type KeySource<Request> = SingleKeySource<Request> | readonly SingleKeySource<Request>[]

/** The default key. */
export const socketAddress: KeyReader = address()

/** The key of a request; undefined for one without, as a key that many requests would share is never made up. */
export type KeyFinder<Request> = (facts: RequestFacts, request: Request) => Awaitable<Key | KeysByName | undefined>

const warn = warnOnce()
/** Keys of a function that are checked. */
const CHECKED_KEYS = 1_000
const WHOLE =
  'a key function returned a whole IPv6 address, and each client has a network full of them: say key: address(), or return clientNetwork()(address) of sluicegate/keys'

/** What a request without a key gets: a denial, no limit, or the key that this finds. */
export type MissingKey<Request> = 'deny' | 'skip' | KeyFinder<Request>

/** @throws {PolicyError} `OPTION_INVALID` */
export function missingKey<Request>(option: MissingKeyOption<Request> = 'deny'): MissingKey<Request> {
  if (option === 'deny' || option === 'skip') return option
  if (typeof option === 'function' || typeof (option as Partial<KeyReader> | null)?.read === 'function') return keyFinder(option)
  const mend = "must be 'deny', 'skip', or another key such as address(), or () => 'anonymous' for one that all such requests share"
  throw new PolicyError('OPTION_INVALID', 'onMissingKey', option, mend)
}

/**
 * Makes the key finder of an option.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function keyFinder<Request>(source: KeySource<Request> = socketAddress): KeyFinder<Request> {
  if (isSeveral(source)) {
    const finders = source.map(keyFinder)
    return (facts, request) =>
      chained(
        answersOf(finders, (finder) => finder(facts, request)),
        (keys) => (keys.includes(undefined) ? undefined : (keys as readonly string[])),
      )
  }
  if (typeof source === 'function') {
    let checked = 0
    return (_, request) =>
      chained(source(request), (key) => {
        if (checked < CHECKED_KEYS && typeof key === 'string' && key.includes(':')) {
          checked++
          if (isWholeIpv6(key)) warn('SLUICEGATE_IPV6_WHOLE', WHOLE)
        }
        return checkedKey(key)
      })
  }
  if (typeof source === 'object' && source !== null && typeof source.read === 'function') {
    return (facts, request) => {
      const key = source.read(facts, request)
      // Readers return keys that fit already; a digest must not be digested again.
      if (typeof key === 'string' && key.length > 0) return key.length <= MAX_KEY_LENGTH ? key : fittedKey(key)
      return checkedKey(key)
    }
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

function checkedKey(key: unknown): Key | KeysByName | undefined {
  if (typeof key === 'string' && key.length > 0) return fittedKey(key)
  if (typeof key === 'bigint' || Number.isFinite(key)) return String(key)
  if (key === undefined || key === null || key === '') return undefined
  if (Array.isArray(key)) {
    const keys = key.map(checkedKey)
    return keys.length === 0 || keys.includes(undefined) ? undefined : (keys as string[])
  }
  if (isByName(key) && Object.keys(key).length > 0) {
    const named = Object.entries(key).map(([name, own]) => [name, checkedKey(own)] as const)
    return named.some(([, own]) => own === undefined) ? undefined : (Object.fromEntries(named) as KeysByName)
  }
  throw new PolicyError(
    'KEY_INVALID',
    'key',
    key,
    'the function returned something that is not a key: return a string, a finite number or a bigint',
  )
}
