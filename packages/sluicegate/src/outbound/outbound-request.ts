/** What is known of a request before it is sent, whoever sends it. */
export interface OutboundRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
  /** A header by its lower-case name. */
  header(name: string): string | undefined
}

/** What decides about sending it again. */
export interface SentRequest extends OutboundRequest {
  /** Whether its body can be sent a second time; true without one. */
  readonly isRepeatable: boolean
  readonly signal: AbortSignal | undefined
  /** Higher goes first. */
  readonly priority: number
}
