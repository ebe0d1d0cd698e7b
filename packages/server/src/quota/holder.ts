/** Numbers of a token bucket; the length of a fill is that of the budget. Zero tokens deny all. */
export interface Grant {
  readonly tokensPerFill: number
  readonly maxTokens: number
}

/** A grant that is in force, or may be. */
export interface GrantInForce extends Grant {
  readonly sentAtMs: number
  /** Before this time the data plane has not expired it. */
  readonly expiresFromMs: number
  /** From this time on it has. */
  readonly expiresByMs: number
}

/** A message on its way. */
export interface SentGrant extends Grant {
  readonly kind: 'change' | 'renewal' | 'abandon'
  readonly sentAtMs: number
  /** Tokens of the ledger that are held for it. */
  readonly paid: number
}

/** One data plane's part of a budget: what it uses, what it was granted. */
export class Holder {
  /** Requests a second, admitted and denied; undefined until two reports have arrived. */
  demand: number | undefined
  reportedAtMs: number
  /** When requests were reported last. */
  usedAtMs: number
  /** Reported since the last message: it is due a renewal. */
  isDue = true
  inForce: GrantInForce | undefined
  sent: SentGrant | undefined
  /** When the stream broke, that time, and the time from which on nothing of it is in force. */
  goneAtMs: number | undefined
  goneUntilMs: number | undefined
  readonly joinedAtMs: number
  #countedFromMs: number
  #counted = 0

  constructor(nowMs: number) {
    this.joinedAtMs = nowMs
    this.reportedAtMs = nowMs
    this.usedAtMs = nowMs
    this.#countedFromMs = nowMs
  }

  /** Numbers by which the data plane decides, once all messages have arrived. */
  get latest(): Grant | undefined {
    return this.sent ?? this.inForce
  }

  /** The most that any of its grants gives for a fill. */
  get tokensPerFill(): number {
    return Math.max(this.inForce?.tokensPerFill ?? 0, this.sent?.tokensPerFill ?? 0)
  }

  /** The most tokens beyond the first that its bucket may hold. */
  get spareTokens(): number {
    return Math.max(0, this.inForce?.maxTokens ?? 0, this.sent?.maxTokens ?? 0, 1) - 1
  }

  /** Takes in a report. Rates are measured by the clock of this side: reports name whole seconds, or none at all. */
  count(requests: number, nowMs: number, shortestMs: number): void {
    this.reportedAtMs = nowMs
    this.isDue = true
    if (requests > 0) this.usedAtMs = nowMs
    this.#counted += requests
    const ms = nowMs - this.#countedFromMs
    if (ms < shortestMs) return
    const rate = (this.#counted * 1_000) / ms
    // Up at once and down by quarters: a pause of one report is no reason to take its whole part away.
    this.demand = Math.max(rate, (this.demand ?? 0) / 4)
    this.#counted = 0
    this.#countedFromMs = nowMs
  }
}
