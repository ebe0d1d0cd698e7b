/** The part of fetch's second argument that is read, of any fetch. */
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

/** The part of a `Request` that is read. */
export interface RequestLike extends InitLike {
  readonly url: string
  clone(): RequestLike
}

/**
 * A copy of fetch's second argument: a plain fetch reads it during the call, so changes while the request waits must not be sent. Inherited
 * properties are copied, too, as the argument may be a `Request`.
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

/** A `Request` of any implementation. */
export function isRequest(input: unknown): input is RequestLike {
  return typeof input === 'object' && input !== null && typeof (input as RequestLike).clone === 'function' && 'url' in input
}

/** A copy of a `Request`, and the second argument to pass with it. For a request that cannot be sent, fetch itself throws. */
export function copiedRequest(from: RequestLike, given: InitLike): readonly [own: RequestLike, init: InitLike] {
  let own: RequestLike
  try {
    own = from.clone()
  } catch {
    return [from, given]
  }
  // The signal of a clone may be disconnected by garbage collection: fetch gets the caller's signal.
  const { signal, referrer, referrerPolicy } = from
  if (given.signal !== undefined || signal === undefined || signal === null) return [own, given]
  // With a second argument fetch drops the referrer of a Request.
  const isAlone = Object.keys(given).length === 0
  return [own, { ...given, signal, ...(isAlone && referrer !== undefined && { referrer, referrerPolicy }) }]
}

/** In the same form: some fetch implementations inspect it. */
function copiedHeaders(headers: unknown): unknown {
  if (typeof headers !== 'object' || headers === null) return headers
  if (!(Symbol.iterator in headers)) return { ...headers }
  if ('append' in headers || headers instanceof Map) return new (headers.constructor as new (from: object) => object)(headers)
  const pairs = [...(headers as Iterable<unknown>)].map((pair) => (Array.isArray(pair) ? [...pair] : pair))
  // Undici takes an array of names and values in turn; other iterables have pairs.
  return Array.isArray(headers) ? pairs : { [Symbol.iterator]: () => pairs[Symbol.iterator]() }
}

type Made = new (from?: unknown) => unknown

/**
 * Whether fetch can read a body more than once; streams and unknown types only once. By class name, so that bodies of other realms and
 * implementations are recognised.
 */
export function isRepeatable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string' || ArrayBuffer.isView(body)) return true
  return ['ArrayBuffer', 'URLSearchParams', 'Blob', 'File'].includes(kindOf(body)) || isForm(body)
}

/** A copy of a body that may be changed while the request waits; other bodies unchanged. */
function copiedBody(body: unknown): unknown {
  // `slice` of a Buffer does not copy.
  if (ArrayBuffer.isView(body)) return body instanceof DataView ? new DataView(bytesOf(body)) : Uint8Array.prototype.slice.call(body)
  if (isForm(body)) {
    const form = new (body.constructor as Made)() as FormData
    for (const [name, value] of body) form.append(name, value)
    return form
  }
  if (kindOf(body) === 'ArrayBuffer') return (body as ArrayBuffer).slice(0)
  return kindOf(body) === 'URLSearchParams' ? new ((body as object).constructor as Made)(body) : body
}

function kindOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

function bytesOf({ buffer, byteOffset, byteLength }: DataView): ArrayBuffer {
  return buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer
}

/** Some FormData implementations are streams. */
function isForm(body: unknown): body is FormData {
  return kindOf(body) === 'FormData' && !('pipe' in (body as object))
}
