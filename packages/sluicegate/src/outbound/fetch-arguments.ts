import { copiedBody, kindOf } from './sent-body.js'

/** What is looked at of fetch's second argument, whichever fetch it is. */
export interface InitLike {
  readonly method?: unknown
  readonly body?: unknown
  readonly headers?: unknown
  readonly signal?: unknown
  readonly priority?: unknown
  readonly redirect?: unknown
  readonly referrer?: unknown
  readonly referrerPolicy?: unknown
}

/** What is looked at of a `Request`. */
export interface RequestLike extends InitLike {
  readonly url: string
  clone(): RequestLike
}

/**
 * The second argument as it is now: fetch reads it when it is called, and whoever waits must not send what was put there since. With all that
 * is inherited, too: a `Request` can be given here as well.
 */
export function copiedInit(init: unknown): InitLike {
  if (typeof init !== 'object' || init === null) return {}
  const copy: Record<string, unknown> = { ...init }
  for (const name in init) if (!Object.hasOwn(copy, name)) copy[name] = init[name as keyof typeof init]
  if (copy.headers !== undefined) copy.headers = copiedHeaders(copy.headers)
  if (copy.body !== undefined) copy.body = copiedBody(copy.body)
  return copy
}

export function copiedInput(input: unknown): unknown {
  return kindOf(input) === 'URL' ? new URL(String(input)) : input
}

/** A `Request` as it is now, with what fetch is to be given beside it. Of one that cannot be sent fetch itself will say so. */
export function copiedRequest(from: RequestLike, given: InitLike): readonly [own: RequestLike, init: InitLike] {
  let own: RequestLike
  try {
    own = from.clone()
  } catch {
    return [from, given]
  }
  // A copy's signal follows only until the runtime collects what ties the two: fetch has to follow the one that the caller has.
  const { signal, referrer, referrerPolicy } = from
  if (given.signal !== undefined || signal === undefined || signal === null) return [own, given]
  // Beside anything else fetch forgets where a Request came from.
  const isAlone = Object.keys(given).length === 0
  return [own, { ...given, signal, ...(isAlone && referrer !== undefined && { referrer, referrerPolicy }) }]
}

/** In the form in which they are: there are fetches that look into it. */
function copiedHeaders(headers: unknown): unknown {
  if (typeof headers !== 'object' || headers === null) return headers
  if (!(Symbol.iterator in headers)) return { ...headers }
  if ('append' in headers || headers instanceof Map) return new (headers.constructor as new (from: object) => object)(headers)
  const pairs = [...(headers as Iterable<unknown>)].map((pair) => (Array.isArray(pair) ? [...pair] : pair))
  // An array of undici has names and values in turn, anything else that is iterable has pairs.
  return Array.isArray(headers) ? pairs : { [Symbol.iterator]: () => pairs[Symbol.iterator]() }
}
