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

type Made = new (from?: unknown) => unknown

/** What fetch reads anew each time; a stream, or whatever else it takes as one, only once. Of any make: by what it calls itself. */
export function isRepeatable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string' || ArrayBuffer.isView(body)) return true
  return ['ArrayBuffer', 'URLSearchParams', 'Blob', 'File'].includes(kindOf(body)) || isForm(body)
}

/** What can be changed while a request waits, as it is now; all else is itself. */
export function copiedBody(body: unknown): unknown {
  // Of a Buffer its own `slice` would be no copy.
  if (ArrayBuffer.isView(body)) return body instanceof DataView ? new DataView(bytesOf(body)) : Uint8Array.prototype.slice.call(body)
  if (isForm(body)) {
    const form = new (body.constructor as Made)() as FormData
    for (const [name, value] of body) form.append(name, value)
    return form
  }
  if (kindOf(body) === 'ArrayBuffer') return (body as ArrayBuffer).slice(0)
  return kindOf(body) === 'URLSearchParams' ? new ((body as object).constructor as Made)(body) : body
}

export function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

function bytesOf({ buffer, byteOffset, byteLength }: DataView): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
}

/** There are forms that are streams. */
function isForm(body: unknown): body is FormData {
  return kindOf(body) === 'FormData' && !('pipe' in (body as object))
}
