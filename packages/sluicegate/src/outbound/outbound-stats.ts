/** Counters since it was made, and how things stand now. */
export interface OutboundStats {
  /** Keys that something is known of. */
  readonly keys: number
  readonly waiting: number
  /** Sent, and not answered yet. */
  readonly inFlight: number
  /** Attempts that were sent. */
  readonly sent: number
  /** Of them those that were not the first. */
  readonly retried: number
  /** Refusals by which a rate was lowered. */
  readonly throttled: number
}

/** How one key stands. */
export interface KeyStats {
  readonly waiting: number
  readonly inFlight: number
  /** The rate that was found out, `Infinity` as long as nothing was refused. */
  readonly perSecond: number
  /** Milliseconds in which nothing is sent: a pause, or nothing is left until then. */
  readonly pauseMs: number
  /** What the other side told last. */
  readonly remaining: number | undefined
}

/** What a limited fetch, and a limited dispatcher, have beside what they do. */
export interface OutboundControls {
  stats(): OutboundStats
  /** How a key stands; undefined when nothing is known of it. */
  statsOf(key: string): KeyStats | undefined
  /**
   * Forgets what the other side of a key told, its pauses too, and what rate was found out: whoever waits goes on as to somebody new. Its own
   * limit stays as it is. False when nothing was known.
   */
  forget(key: string): boolean
  /** Rejects all who wait, between two attempts too, with `CLOSED`, and all who come. What is under way goes on. */
  close(): void
}

/** What whoever limits can be asked, and told: as functions that stand alone. */
export function controlsOf(lines: OutboundControls): OutboundControls {
  return {
    stats: () => lines.stats(),
    statsOf: (key) => lines.statsOf(key),
    forget: (key) => lines.forget(key),
    close: () => lines.close(),
  }
}
