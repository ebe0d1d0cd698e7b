import { STATUS_CODES } from 'node:http'
import { type HeaderPair, problemJson } from 'sluicegate/http'
import type { RequestHead } from './handler.js'

/** What to answer when there is no decision to answer with. */
export type ProblemCode =
  | 'ADMIN_ONLY'
  | 'BODY_INVALID'
  | 'BODY_TOO_LARGE'
  | 'BUSY'
  | 'CALL_PASSED'
  | 'CONFIG_INVALID'
  | 'CONTENT_TYPE'
  | 'COST_INVALID'
  | 'CROSS_SITE'
  | 'HEADERS_TOO_LARGE'
  | 'HOLD_CLOSED'
  | 'HOLD_UNKNOWN'
  | 'INTERNAL'
  | 'KEY_INVALID'
  | 'KEY_MISSING'
  | 'METHOD'
  | 'OUTAGE'
  | 'PARAMETER_INVALID'
  | 'PARAMETER_REPEATED'
  | 'PARAMETER_UNKNOWN'
  | 'PATH_UNKNOWN'
  | 'PERMIT_UNKNOWN'
  | 'POLICY_MISSING'
  | 'POLICY_UNKNOWN'
  | 'POLICY_UNSUITABLE'
  | 'REQUEST_INVALID'
  | 'REQUEST_TIMEOUT'
  | 'RESERVATION_UNKNOWN'
  | 'TOKEN_INVALID'
  | 'TOO_MANY_HELD'

/** A request that cannot be answered as it is. Its message says what to mend. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly status: number
  readonly code: ProblemCode
  readonly headers: readonly HeaderPair[]

  constructor(status: number, code: ProblemCode, detail: string, headers: readonly HeaderPair[] = []) {
    super(detail)
    this.status = status
    this.code = code
    this.headers = headers
  }

  /**
   * The body, `application/problem+json`. The type is `about:blank`: the status says what kind of problem it is, `code` which.
   *
   * Source: RFC 9457, sections 3.1 and 4.2.1.
   */
  toJson(): string {
    const { status, code, message } = this
    return problemJson({ title: STATUS_CODES[status], status, detail: message, code })
  }
}

/**
 * Whether a header field stands more than once in `rawHeaders`, names and values in turn. Of most fields Node keeps the first, and a proxy
 * may have used the last.
 */
export function isGivenTwice(rawHeaders: readonly string[], lowerCaseName: string): boolean {
  let times = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) times++
  }
  return times > 1
}

/**
 * A page on another site may not spend tokens through its visitor's browser: an image's address would be enough.
 *
 * @throws {Problem} for a request that a browser marked so.
 */
export function refuseOtherSites({ headers }: RequestHead): void {
  // Node joins several fields of that name.
  if (String(headers['sec-fetch-site']).includes('cross-site'))
    throw new Problem(403, 'CROSS_SITE', 'pages of other sites may not take tokens')
}
