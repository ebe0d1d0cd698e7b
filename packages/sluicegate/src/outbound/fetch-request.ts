import { copiedInit, copiedInput, copiedRequest, isRepeatable, type RequestLike } from './copied-arguments.js'
import { drop } from './held-response.js'
import type { SentRequest } from './outbound-request.js'

/** The values of fetch's `priority`, as numbers. */
const PRIORITIES: Readonly<Record<string, number>> = { high: 1, auto: 0, low: -1 }
/** Methods for which fetch allows no body. */
const BODILESS = new Set(['GET', 'HEAD'])

/** A call of fetch: its request, and arguments for each attempt. */
export interface FetchCall {
  readonly request: SentRequest
  /** Whether a response or an error may come from after a redirect. */
  readonly followsRedirects: boolean
  /** The arguments of the next attempt. */
  next(): readonly [input: unknown, init: unknown]
  /** To be called after the last attempt. */
  done(): void
}

/**
 * Reads and copies the arguments of fetch. Undefined for URLs that are not HTTP, or invalid: fetch itself handles these.
 *
 * @param priorityOf of the options; without it `init.priority` counts.
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
  // Not every browser exposes the body of a Request: undefined may mean that there is one.
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
  /** The caller's request. */
  readonly from: RequestLike
  /** Its copy; the request itself where it cannot be copied. */
  readonly own: RequestLike
  readonly init: unknown
  readonly mayRepeat: boolean
}

/** The body of a Request can be read once: a copy is kept as long as another attempt may need it. */
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
    // Once it is sent, the caller's request is used up, as by a plain fetch.
    if (!this.isSent && from !== own) drop(from)
    this.isSent = true
    return [input, init]
  }

  done(): void {
    const { from, mayRepeat } = this.copied
    // If nothing was sent, the caller's request remains usable.
    if (this.spare !== from && (mayRepeat || !this.isSent)) drop(this.spare)
  }
}

function isRequest(input: unknown): input is RequestLike {
  return typeof input === 'object' && input !== null && typeof (input as RequestLike).clone === 'function' && 'url' in input
}

function urlOf(input: unknown): URL | undefined {
  try {
    // In a page relative URLs are relative to its address.
    return new URL(String(input), (globalThis as { location?: { href?: string } }).location?.href)
  } catch {
    return undefined
  }
}

/** Invalid headers are ignored here: fetch itself throws. */
function headersOf(headers: unknown): Headers {
  try {
    return new Headers((headers ?? {}) as ConstructorParameters<typeof Headers>[0])
  } catch {
    return new Headers()
  }
}
