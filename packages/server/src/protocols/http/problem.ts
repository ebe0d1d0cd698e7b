import { STATUS_CODES } from 'node:http'
import { type HeaderPair, problemJson } from 'sluicegate/http'

/** What to answer when there is no decision to answer with. */
export type ProblemCode =
  | 'ADMIN_ONLY'
  | 'BODY_INVALID'
  | 'BODY_TOO_LARGE'
  | 'BUSY'
  | 'CONFIG_INVALID'
  | 'CONTENT_TYPE'
  | 'COST_INVALID'
  | 'CROSS_SITE'
  | 'HEADERS_TOO_LARGE'
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
