import type { SentRequest } from './outbound-request.js'

/** RFC 9110, section 9.2.2: those that have the same effect twice as once. */
const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])
/** Nothing came of it, this time. */
const PASSING_STATUSES = new Set([408, 429, 502, 503, 504])
/** Nobody was reached, so nobody has seen the request. */
const NOT_SENT = new Set(['EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectionRefused'])
/** The connection broke: the other side may have done what was asked. */
const BROKEN_OFF = new Set([
  'ECONNABORTED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_SOCKET',
  'ConnectionClosed',
])

/** What came of a request. */
export interface Outcome {
  /** Of the response, if there is one. */
  readonly status?: number
  /** What sending it failed with. */
  readonly error?: unknown
}

/**
 * Whether a request may be sent again after what came of it, as far as its meaning goes:
 *
 * - 429: any method. It says that the request was not acted on because of its rate, which is what RFC 9110 asks for: some means to know that
 *   it was never applied.
 * - 503, 408, 502, 504, a connection that broke: only what is idempotent by its method, or by an `Idempotency-Key`. Of these a proxy may tell
 *   when the server behind it had begun, `Retry-After` or not.
 * - A connection that was never made: any method.
 * - All else: no. In no case what has a body that can be read only once.
 *
 * Source: RFC 9110, section 9.2.2; RFC 6585, section 4; draft-ietf-httpapi-idempotency-key-header.
 */
export function isSafeToRepeat(request: SentRequest, { status, error }: Outcome): boolean {
  if (!request.isRepeatable) return false
  if (status === 429) return true
  if (status !== undefined) return PASSING_STATUSES.has(status) && isIdempotent(request)
  const codes = codesOf(error)
  return codes.some((code) => NOT_SENT.has(code)) || (codes.some((code) => BROKEN_OFF.has(code)) && isIdempotent(request))
}

function isIdempotent(request: SentRequest): boolean {
  return IDEMPOTENT.has(request.method) || Boolean(request.header('idempotency-key'))
}

/** Mistakes of the caller have no code: sending them again would not mend them. */
function codesOf(error: unknown): string[] {
  const codes: string[] = []
  let at = error as { code?: unknown; cause?: unknown } | undefined
  // `fetch` says why in the cause.
  for (let depth = 0; depth < 4 && typeof at === 'object' && at !== null; depth++, at = at.cause as typeof at) {
    if (typeof at.code === 'string') codes.push(at.code)
  }
  return codes
}
