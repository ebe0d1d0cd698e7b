/** What `limiter.wait` takes beside the key. */
export interface WaitOptions {
  /** Default 1. */
  readonly cost?: number
  /** Ends the wait: it rejects with the signal's reason, and what was held goes back. */
  readonly signal?: AbortSignal
  /** Denied at once when it would take longer; default as long as it takes. */
  readonly maxWaitMs?: number
}
