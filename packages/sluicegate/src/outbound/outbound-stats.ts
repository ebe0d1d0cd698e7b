/** Counters since creation, and the current state. */
export interface OutboundStats {
  /** Keys in memory. */
  readonly keys: number
  readonly waiting: number
  /** Sent and not answered yet. */
  readonly inFlight: number
  /** Attempts that were sent. */
  readonly sent: number
  /** Those of them that were not the first attempt. */
  readonly retried: number
  /** Refusals that lowered a rate. */
  readonly throttled: number
}

/** The state of one key. */
export interface KeyStats {
  readonly waiting: number
  readonly inFlight: number
  /** The learned rate; `Infinity` before the first refusal. */
  readonly perSecond: number
  /** Milliseconds until a request may be sent: a pause, or an exhausted quota. */
  readonly pauseMs: number
  /** What the server announced last. */
  readonly remaining: number | undefined
}

/** The methods of a limited fetch and of a limited dispatcher. */
export interface OutboundControls {
  stats(): OutboundStats
  /** The state of a key; undefined for an unknown key. */
  statsOf(key: string): KeyStats | undefined
  /**
   * Forgets what the server of a key announced, its pauses, and the learned rate: waiting requests go on as to an unknown host. The key's
   * own limit is unchanged. False for an unknown key.
   */
  forget(key: string): boolean
  /** Rejects all waiting requests, also those between two attempts, and all later ones with `CLOSED`. Requests under way continue. */
  close(): void
}

/** The methods as standalone functions. */
export function controlsOf(queues: OutboundControls): OutboundControls {
  return {
    stats: () => queues.stats(),
    statsOf: (key) => queues.statsOf(key),
    forget: (key) => queues.forget(key),
    close: () => queues.close(),
  }
}
