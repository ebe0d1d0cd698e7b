import type { SentRequest } from './outbound-request.js'

/** Fetch's own words for it, as numbers. */
const PRIORITIES: Readonly<Record<string, number>> = { high: 1, auto: 0, low: -1 }
/** Fetch lets them have no body. */
const BODILESS = new Set(['GET', 'HEAD'])

/** What is looked at of fetch's second argument, whichever fetch it is. */
interface InitLike {
  readonly method?: unknown
  readonly body?: unknown
  readonly headers?: unknown
  readonly signal?: unknown
  readonly priority?: unknown
  readonly redirect?: unknown
}

/** What is looked at of a `Request`. */
interface RequestLike extends InitLike {
  readonly url: string
  clone(): RequestLike
}

/** A call of fetch, looked at; and what to call it with, as often as need be. */
export interface FetchCall {
  readonly request: SentRequest
  /** Whether what comes of it may be what came of a redirect. */
  readonly followsRedirects: boolean
  /** The arguments of the next attempt. */
  next(): readonly [input: unknown, init: unknown]
  /** No attempt will follow. */
  done(): void
}

/**
 * Looks at the arguments of fetch. Undefined when they go nowhere by HTTP, or nowhere at all: fetch itself will say so.
 *
 * @param priorityOf the caller's; without one what `init.priority` says.
 * @param mayRepeat whether there can be a second attempt.
 */
export function fetchCall(
  input: unknown,
  init: unknown,
  priorityOf: ((request: SentRequest) => number) | undefined,
  mayRepeat: boolean,
): FetchCall | undefined {
  const given = (init ?? {}) as InitLike
  const from = isRequest(input) ? input : undefined
  const url = urlOf(from?.url ?? input)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  const method = String(given.method ?? from?.method ?? 'GET').toUpperCase()
  const hasOwnBody = from !== undefined && given.body == null && from.body !== null && !BODILESS.has(method)
  // Not every browser shows the body of a Request: then there may be one.
  const isCloned = hasOwnBody && from.body !== undefined
  const followsRedirects = !['manual', 'error'].includes(String(given.redirect ?? from?.redirect))
  let headers: Headers | undefined
  const signal = (given.signal === undefined ? from?.signal : given.signal) as AbortSignal | null | undefined
  const request: SentRequest = {
    url,
    method,
    header: (name) => {
      headers ??= headersOf(given.headers ?? from?.headers)
      return headers.get(name) ?? undefined
    },
    isRepeatable: isCloned || (!hasOwnBody && isRepeatable(given.body)),
    signal: signal ?? undefined,
    priority: PRIORITIES[String(given.priority)] ?? 0,
  }
  const ranked = priorityOf === undefined ? request : { ...request, priority: priorityOf(request) }
  if (isCloned && mayRepeat) return new ClonedCall(ranked, followsRedirects, from, init)
  return { request: ranked, followsRedirects, next: () => [input, init], done: () => undefined }
}

/** A body within a Request can be read once: a copy is kept until it is known whether it will be needed. */
class ClonedCall implements FetchCall {
  readonly request: SentRequest
  readonly followsRedirects: boolean
  private readonly init: unknown
  private readonly own: RequestLike
  private spare: RequestLike

  constructor(request: SentRequest, followsRedirects: boolean, from: RequestLike, init: unknown) {
    this.request = request
    this.followsRedirects = followsRedirects
    this.own = from
    this.init = init
    this.spare = from
  }

  next(): readonly [input: unknown, init: unknown] {
    const input = this.spare
    this.spare = input.clone()
    return [input, this.init]
  }

  done(): void {
    // Never sent, it is still the caller's.
    if (this.spare === this.own) return
    const { cancel } = this.spare.body as { cancel(): Promise<void> }
    cancel.call(this.spare.body).catch(() => undefined)
  }
}

function isRequest(input: unknown): input is RequestLike {
  return typeof input === 'object' && input !== null && typeof (input as RequestLike).clone === 'function' && 'url' in input
}

function urlOf(input: unknown): URL | undefined {
  try {
    // Relative ones are relative to the page, where there is one.
    return new URL(String(input), (globalThis as { location?: { href?: string } }).location?.href)
  } catch {
    return undefined
  }
}

/** Headers that cannot be are none: fetch itself will say so. */
function headersOf(headers: unknown): Headers {
  try {
    return new Headers((headers ?? {}) as ConstructorParameters<typeof Headers>[0])
  } catch {
    return new Headers()
  }
}

/** What fetch reads anew each time; a stream, or whatever else it takes as one, only once. */
function isRepeatable(body: unknown): boolean {
  return (
    body === undefined ||
    body === null ||
    typeof body === 'string' ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body) ||
    body instanceof URLSearchParams ||
    body instanceof Blob ||
    body instanceof FormData
  )
}
