import type { SentRequest } from './outbound-request.js'

/** RFC 9110, section 9.2.2: those that have the same effect twice as once. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
/** Nothing came of it, this time. */
const PASSING_STATUSES = new Set([408, 429, 502, 503, 504])
/** Nobody was reached, so nobody has seen the request. */
const NOT_SENT = new Set(['EAI_AGAIN', 'ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused', 'NGHTTP2_REFUSED_STREAM'])
/** The same of a connection that was to be made; of one that was there it is told, too, when the network between fails. */
const NOT_REACHED = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])
/** The connection broke: the other side may have done what was asked. */
const BROKEN_OFF = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_SOCKET',
  'ConnectionClosed',
  ...NOT_REACHED,
])

/** What came of a request. */
export interface Outcome {
  /** Of the response, if there is one. */
  readonly status?: number
  /** What sending it failed with. */
  readonly error?: unknown
  /** Whether it came of a redirect, which answered the request itself. Undefined when nobody knows: errors of `fetch` do not tell. */
  readonly isRedirected?: boolean | undefined
}

/**
 * Whether a request may be sent again after what came of it, as far as its meaning goes:
 *
 * - 429: any method. It says that the request was not acted on because of its rate, which is what RFC 9110 asks for: some means to know that
 *   it was never applied.
 * - 503, 408, 502, 504, a connection that broke: only what is idempotent by its method, or by an `Idempotency-Key`. Of these a proxy may tell
 *   when the server behind it had begun, `Retry-After` or not.
 * - A connection that was never made, a stream of HTTP/2 that was refused: any method.
 * - After a redirect, or where there may have been one: only what is idempotent. Whoever redirects a POST may have done it.
 * - All else: no. In no case what has a body that can be read only once.
 *
 * Source: RFC 9110, sections 9.2.2 and 15.4.4; RFC 6585, section 4; draft-ietf-httpapi-idempotency-key-header.
 */
export function isSafeToRepeat(request: SentRequest, { status, error, isRedirected }: Outcome): boolean {
  if (!request.isRepeatable) return false
  const faults = status === undefined ? faultsOf(error) : []
  if (!isIdempotent(request)) return isRedirected === false && (status === 429 || faults.some(isNotSent))
  return PASSING_STATUSES.has(status ?? 0) || faults.some((fault) => isNotSent(fault) || BROKEN_OFF.has(fault.code))
}

function isIdempotent(request: SentRequest): boolean {
  return IDEMPOTENT.has(request.method) || Boolean(request.header('idempotency-key'))
}

interface Fault {
  readonly code: string
  /** Whether it is about making a connection. */
  readonly isConnecting: boolean
}

function isNotSent({ code, isConnecting }: Fault): boolean {
  return NOT_SENT.has(code) || (isConnecting && NOT_REACHED.has(code))
}

/** Mistakes of the caller have no code: sending them again would not mend them. */
function faultsOf(error: unknown): Fault[] {
  const faults: Fault[] = []
  let at = error as { code?: unknown; message?: unknown; cause?: unknown; errors?: unknown } | undefined
  // `fetch` says why in the cause.
  for (let depth = 0; depth < 4 && typeof at === 'object' && at !== null; depth++, at = at.cause as typeof at) {
    // Of a host with several addresses each was tried.
    const tried = Array.isArray(at.errors) && at.errors.length > 0 ? at.errors : [at]
    const code = at.code === 'ERR_HTTP2_STREAM_ERROR' ? streamCode(at) : at.code
    if (typeof code === 'string') faults.push({ code, isConnecting: tried.every((each) => each?.syscall === 'connect') })
  }
  return faults
}

/** Node.js has one code for all that can befall a stream, and says which it is in words: a refused one was never begun (RFC 9113, section 8.7). */
function streamCode({ message }: { readonly message?: unknown }): string | undefined {
  return /NGHTTP2_\w+/.exec(String(message))?.[0]
}
