/** What a server announces about one policy. */
export interface PolicyReading {
  /** Its name; drafts 6 and 7 have none. */
  readonly name?: string
  /** Tokens in a window. */
  readonly limit?: number
  readonly windowMs?: number
  /** The unit of tokens, such as `requests`. */
  readonly unit?: string
  readonly remaining?: number
  readonly resetAfterMs?: number
  /** In base64, as it was sent. */
  readonly partitionKey?: string
}

/** What a response announces about limits. What is missing or malformed is undefined. */
export interface RateLimitReading {
  /**
   * Of the binding policy: the one with the least remaining, of equals the one with the longest reset. Of separate resources, as LLM
   * services have them: one that is exhausted, else `requests`.
   */
  readonly limit?: number
  readonly remaining?: number
  /** Milliseconds until more is available. */
  readonly resetAfterMs?: number
  /**
   * `Retry-After`: milliseconds until the same request may be sent again; for a response from a cache less its age. It precedes the others.
   */
  readonly retryAfterMs?: number
  /** If several policies, or their windows, are announced. */
  readonly policies?: readonly PolicyReading[]
}
