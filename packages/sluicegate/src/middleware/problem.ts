/** The media type of a problem. Source: RFC 9457, section 3. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** The members of a problem; other names are extension members. */
export interface ProblemMembers {
  /** A URI that identifies the kind of problem; default `about:blank`, whose meaning is that of the status. */
  readonly type?: string
  readonly title: string | undefined
  readonly status: number
  readonly detail?: string
  readonly [extension: string]: unknown
}

/**
 * A problem as the body of a response of type `application/problem+json`.
 *
 * Source: RFC 9457, sections 3.1 and 4.2.1.
 *
 * @example problemJson({ title: 'Not Found', status: 404, code: 'PATH_UNKNOWN' })
 */
export function problemJson({ type = 'about:blank', ...members }: ProblemMembers): string {
  return JSON.stringify({ type, ...members })
}
