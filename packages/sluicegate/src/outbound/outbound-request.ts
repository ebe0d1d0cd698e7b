/** A request before it is sent. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
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
