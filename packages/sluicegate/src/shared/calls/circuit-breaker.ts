/** Consecutive failures that open the circuit. */
const MOST_FAILURES = 3
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
/** A server that failed is held to be out for so long after the pause; without a call since then nothing is known of it. */
const KNOWN_MS = 30_000

/**
 * Circuit breaker: after three consecutive failures the circuit opens for a pause, then one call at a time probes the server. The pause
 * doubles with each failed probe, up to 5 s. It is shortened at random by up to half, so that processes do not probe together.
 *
 * Source: M. Nygard, "Release It!", 2007.
 */
export class CircuitBreaker {
  private failures = 0
  private opensMs = 0
  private isProbing = false
  /** Grows with each pause. Failures of calls from an earlier round are ignored: many calls that fail at once are one fault. */
  private round = 0
  /** The error of the last failed call. */
  private lastFault: unknown
  /** Calls that failed already, for another of their callers. */
  private readonly failedCalls = new WeakSet<object>()
  private readonly random: () => number

  constructor(random: () => number = Math.random) {
    this.random = random
  }

  /** The round of a call that may be made now; else undefined. The caller must report how the call ended: `succeeded`, `failed` or `untried`. */
  attempt(nowMs: number): number | undefined {
    if (!this.isOpen) return this.round
    if (this.isProbing || nowMs < this.opensMs) return undefined
    this.isProbing = true
    return this.round
  }

  /** Milliseconds until the next call may be made; 0 for now. */
  leftMs(nowMs: number): number {
    return this.isOpen ? Math.max(this.isProbing ? 1 : 0, this.opensMs - nowMs) : 0
  }

  /** Whether the circuit is open. */
  get isOpen(): boolean {
    return this.failures >= MOST_FAILURES
  }

  /** Whether the circuit is open, and a call failed of late. */
  isOutAt(nowMs: number): boolean {
    return this.isOpen && nowMs < this.opensMs + KNOWN_MS
  }

  /** Whether no call failed since the last answer. */
  get isSound(): boolean {
    return this.failures === 0
  }

  /** The error that opened the circuit. */
  get fault(): unknown {
    return this.lastFault
  }

  /** True if this closed the circuit. */
  succeeded(): boolean {
    const wasOpen = this.isOpen
    this.failures = 0
    this.isProbing = false
    this.lastFault = undefined
    return wasOpen
  }

  /**
   * True if this opened the circuit.
   *
   * @param call what several callers made together: it fails once.
   */
  failed(nowMs: number, round: number, fault?: unknown, call?: object): boolean {
    if (round !== this.round) return false
    if (call !== undefined) {
      if (this.failedCalls.has(call)) return false
      this.failedCalls.add(call)
    }
    this.lastFault = fault
    this.failures++
    this.isProbing = false
    if (!this.isOpen) return false
    this.round++
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - MOST_FAILURES))
    this.opensMs = nowMs + pauseMs * (1 - this.random() / 2)
    return this.failures === MOST_FAILURES
  }

  /** The call was not made. */
  untried(round: number): void {
    if (round === this.round) this.isProbing = false
  }
}
