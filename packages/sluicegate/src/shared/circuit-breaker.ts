/** Failures in a row after which nobody is sent any more. */
const MOST_FAILURES = 3
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

/**
 * Circuit breaker: after three failures in a row nothing is tried for a pause, then by one at a time. The pause doubles with each that
 * fails, up to 5 s, and is shortened at random by up to half, so that processes do not come back together.
 *
 * Source: M. Nygard, "Release It!", 2007.
 */
export class CircuitBreaker {
  private failures = 0
  private opensMs = 0
  private isProbing = false
  /** Grows with each pause that begins. Of what was sent before it a failure is no news: many at once are one fault, not many. */
  private round = 0
  /** What came of the last call that failed. */
  private lastFault: unknown
  private readonly random: () => number

  constructor(random: () => number = Math.random) {
    this.random = random
  }

  /** Asks whether a call may be tried now. If so it answers with its round, and has to be told what came of it: one of the three below. */
  attempt(nowMs: number): number | undefined {
    if (!this.isOpen) return this.round
    if (this.isProbing || nowMs < this.opensMs) return undefined
    this.isProbing = true
    return this.round
  }

  /** Milliseconds until it lets the next call try, 0 when it does now. */
  leftMs(nowMs: number): number {
    return this.isOpen ? Math.max(this.isProbing ? 1 : 0, this.opensMs - nowMs) : 0
  }

  /** Whether what is asked for is decided elsewhere for now. */
  get isOpen(): boolean {
    return this.failures >= MOST_FAILURES
  }

  /** Whether nothing has failed since the last answer. */
  get isSound(): boolean {
    return this.failures === 0
  }

  /** Why nothing is tried, while that is so. */
  get fault(): unknown {
    return this.lastFault
  }

  /** Answers whether it was open before. */
  succeeded(): boolean {
    const wasOpen = this.isOpen
    this.failures = 0
    this.isProbing = false
    this.lastFault = undefined
    return wasOpen
  }

  /** Answers whether it opened by this. */
  failed(nowMs: number, round: number, fault?: unknown): boolean {
    if (round !== this.round) return false
    this.lastFault = fault
    this.failures++
    this.isProbing = false
    if (!this.isOpen) return false
    this.round++
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - MOST_FAILURES))
    this.opensMs = nowMs + pauseMs * (1 - this.random() / 2)
    return this.failures === MOST_FAILURES
  }

  /** The call was not made: nothing is known. */
  untried(round: number): void {
    if (round === this.round) this.isProbing = false
  }
}
