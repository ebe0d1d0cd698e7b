/** The media type of a problem. Source: RFC 9457, section 3. */
export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** What a problem says; whatever else it has are extension members. */
export interface ProblemMembers {
  /** A URI that names the kind of problem; without it the status says it. */
  readonly type?: string
  readonly title: string | undefined
  readonly status: number
  readonly detail?: string
  readonly [extension: string]: unknown
}

/**
 * A problem as the body of a response, `application/problem+json`.
 *
 * Source: RFC 9457, sections 3.1 and 4.2.1.
 *
 * @example problemJson({ title: 'Not Found', status: 404, code: 'PATH_UNKNOWN' })
 */
export function problemJson({ type = 'about:blank', ...members }: ProblemMembers): string {
  return JSON.stringify({ type, ...members })
}
