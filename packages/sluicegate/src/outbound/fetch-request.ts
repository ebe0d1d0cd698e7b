import { copiedInit, copiedInput, copiedRequest, isRepeatable, type RequestLike } from './copied-arguments.js'
import { drop } from './held-response.js'
import type { SentRequest } from './outbound-request.js'

/** Fetch's own words for it, as numbers. */
const PRIORITIES: Readonly<Record<string, number>> = { high: 1, auto: 0, low: -1 }
/** Fetch lets them have no body. */
const BODILESS = new Set(['GET', 'HEAD'])

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
 * Looks at the arguments of fetch, once, and remembers them as they are. Undefined when they go nowhere by HTTP, or nowhere at all: fetch
 * itself will say so.
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
  const from = isRequest(input) ? input : undefined
  const url = urlOf(from?.url ?? input)
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined
  const given = copiedInit(init)
  const method = String(given.method ?? from?.method ?? 'GET').toUpperCase()
  const hasOwnBody = from !== undefined && given.body == null && from.body !== null && !BODILESS.has(method)
  // Not every browser shows the body of a Request: then there may be one.
  const isCloned = hasOwnBody && from.body !== undefined
  const followsRedirects = !['manual', 'error'].includes(String(given.redirect ?? from?.redirect))
  const signal = (given.signal === undefined ? from?.signal : given.signal) as AbortSignal | null | undefined
  const [own, beside] = from === undefined ? [copiedInput(input), init == null ? init : given] : copiedRequest(from, given)
  let headers: Headers | undefined
  const request: SentRequest = {
    url,
    method,
    header: (name) => {
      headers ??= headersOf(given.headers ?? (own as Partial<RequestLike>).headers)
      return headers.get(name) ?? undefined
    },
    isRepeatable: isCloned || (!hasOwnBody && isRepeatable(given.body)),
    signal: signal ?? undefined,
    priority: PRIORITIES[String(given.priority)] ?? 0,
  }
  const ranked = priorityOf === undefined ? request : { ...request, priority: priorityOf(request) }
  if (isCloned) return new ClonedCall(ranked, followsRedirects, { from, own: own as RequestLike, init: beside, mayRepeat })
  return { request: ranked, followsRedirects, next: () => [own, beside], done: () => undefined }
}

/** What a {@link ClonedCall} sends. */
interface Copied {
  /** The caller's. */
  readonly from: RequestLike
  /** Its copy, or itself where there can be none. */
  readonly own: RequestLike
  readonly init: unknown
  readonly mayRepeat: boolean
}

/** A body within a Request can be read once: a copy is kept until it is known whether it will be needed. */
class ClonedCall implements FetchCall {
  readonly request: SentRequest
  readonly followsRedirects: boolean
  private readonly copied: Copied
  private spare: RequestLike
  private isSent = false

  constructor(request: SentRequest, followsRedirects: boolean, copied: Copied) {
    this.request = request
    this.followsRedirects = followsRedirects
    this.copied = copied
    this.spare = copied.own
  }

  next(): readonly [input: unknown, init: unknown] {
    const { from, own, init, mayRepeat } = this.copied
    const input = this.spare
    if (mayRepeat) this.spare = input.clone()
    // Once it is sent the caller's is used up, as by any fetch.
    if (!this.isSent && from !== own) drop(from)
    this.isSent = true
    return [input, init]
  }

  done(): void {
    const { from, mayRepeat } = this.copied
    // Never sent, it is still the caller's.
    if (this.spare !== from && (mayRepeat || !this.isSent)) drop(this.spare)
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
