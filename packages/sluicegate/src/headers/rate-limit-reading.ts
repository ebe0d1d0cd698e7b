/** What the other side says of one policy. */
export interface PolicyReading {
  /** Its name; drafts 6 and 7 have none. */
  readonly name?: string
  /** Tokens in a window. */
  readonly limit?: number
  readonly windowMs?: number
  /** What the tokens are, such as `requests`. */
  readonly unit?: string
  readonly remaining?: number
  readonly resetAfterMs?: number
  /** In base64, as it was sent. */
  readonly partitionKey?: string
}

/** What a response says about limits. Whatever was not said, or not so that it could be understood, is not there. */
export interface RateLimitReading {
  /**
   * Of the policy that binds: the one with the least left, and of equals the one that takes longest. Of resources told apart, as services of
   * language models have them, one of which nothing is left, else `requests`.
   */
  readonly limit?: number
  readonly remaining?: number
  /** Milliseconds until there is more. */
  readonly resetAfterMs?: number
  /** `Retry-After`: milliseconds until the same request may be sent again, of a response from a cache less its age. It has precedence over the others. */
  readonly retryAfterMs?: number
  /** Where several policies, or their windows, are told. */
  readonly policies?: readonly PolicyReading[]
}
