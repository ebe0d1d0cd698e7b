/** A request before it is sent. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
  /** A header by its lower-case name. */
  header(name: string): string | undefined
}

/** The head of a response. */
export interface OutboundAnswer {
  readonly status: number
  /** A header by its lower-case name. */
  header(name: string): string | undefined
}

/** A request with what decides about a retry. */
export interface SentRequest extends OutboundRequest {
  /** Whether its body can be sent a second time; true without a body. */
  readonly isRepeatable: boolean
  readonly signal: AbortSignal | undefined
  /** Higher is sent first. */
  readonly priority: number
}

/** RFC 9110, section 9.2.2: methods that have the same effect twice as once. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
/** Temporary failures. Those from 520 on are of CDNs and overloaded services: what is behind them did not answer, or not in time. */
const PASSING_STATUSES = new Set([408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524, 529])
/** Errors of a connection that was not made: the server has not seen the request. */
const NOT_SENT = new Set(['EAI_AGAIN', 'ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused', 'NGHTTP2_REFUSED_STREAM'])
/** The same while connecting; on an established connection these also mean a network failure. */
const NOT_REACHED = new Set(['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])
/** The connection broke: the server may have processed the request. */
const BROKEN_OFF = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EPIPE',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_SOCKET',
  'ConnectionClosed',
  ...NOT_REACHED,
])

/** The outcome of a request. */
export interface Outcome {
  /** Of the response, if there is one. */
  readonly status?: number
  /** The error, if there is no response. */
  readonly error?: unknown
  /** Whether redirects were followed, after which the request itself was answered. Undefined if not known: errors of `fetch` do not say. */
  readonly isRedirected?: boolean | undefined
}

/**
 * Whether a request may be sent again after an outcome, by its semantics:
 *
 * - 429: any method. It says that the request was not processed because of its rate, and RFC 9110 asks for some means to know that.
 * - 503, 408, 425, 502, 504, 520 to 524, 529, a broken connection: only requests that are idempotent by their method or by an `Idempotency-Key`. A proxy may send
 *   these after the server behind it has begun, with or without `Retry-After`.
 * - A connection that was never made, a refused HTTP/2 stream: any method.
 * - After a redirect, or where there may have been one: only idempotent requests. A server that redirects a POST may have processed it.
 * - Anything else, and any request whose body can be read only once: no.
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
  /** Whether it happened while connecting. */
  readonly isConnecting: boolean
}

function isNotSent({ code, isConnecting }: Fault): boolean {
  return NOT_SENT.has(code) || (isConnecting && NOT_REACHED.has(code))
}

/** Errors without a code are mistakes of the caller, which a retry would repeat. */
function faultsOf(error: unknown): Fault[] {
  const faults: Fault[] = []
  let at = error as { code?: unknown; message?: unknown; cause?: unknown; errors?: unknown } | undefined
  // `fetch` has the reason in the cause.
  for (let depth = 0; depth < 4 && typeof at === 'object' && at !== null; depth++, at = at.cause as typeof at) {
    // An AggregateError: each address of the host was tried.
    const tried = Array.isArray(at.errors) && at.errors.length > 0 ? at.errors : [at]
    const code = at.code === 'ERR_HTTP2_STREAM_ERROR' ? streamCode(at) : at.code
    if (typeof code === 'string') faults.push({ code, isConnecting: tried.every((each) => each?.syscall === 'connect') })
  }
  return faults
}

/**
 * Node.js has one code for all stream errors, and names the HTTP/2 code in the message; a refused stream was not processed (RFC 9113,
 * section 8.7).
 */
function streamCode({ message }: { readonly message?: unknown }): string | undefined {
  return /NGHTTP2_\w+/.exec(String(message))?.[0]
}
