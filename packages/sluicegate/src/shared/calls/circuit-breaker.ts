/** Consecutive failures that open the circuit. */
const MOST_FAILURES = 3
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000
/** A server that failed is held to be out for so long after the pause; without a call since then nothing is known of it. */
const KNOWN_MS = 30_000

/**
 * Circuit breaker: after three consecutive failures the circuit opens for a pause, then one call at a time probes the server. The pause
 * doubles with each failed probe, up to 2 s. It is shortened at random by up to half, so that processes do not probe together.
 *
 * | state | `attempt` | `succeeded` | `failed` | `untried` |
 * | --- | --- | --- | --- | --- |
 * | closed | goes | closed, counts anew | closed; the third in a row: open | closed |
 * | open | refused; after the pause: probing, goes | closed | open | open |
 * | probing | refused; the probe is lost: probing, goes | closed | of the probe: open, for twice as long | of the probe: open, the pause is over |
 *
 * Each opening and each probe begins a *round*. What is reported of a call of an earlier round changes nothing, but for `succeeded`: an
 * answer is an answer. So many calls that fail at once are one fault. A probe counts also where its call failed before for another caller:
 * nothing else ends the state. Time alone leads out of `open`, and out of `probing` where the report is lost.
 *
 * Source: M. Nygard, "Release It!", 2007.
 */
export class CircuitBreaker {
  private state: 'closed' | 'open' | 'probing' = 'closed'
  /** In a row. */
  private failures = 0
  private failedMs = 0
  /** The end of the pause. */
  private opensMs = 0
  private probedMs = 0
  private round = 0
  /** The error of the last failed call. */
  private lastFault: unknown
  /** Calls that failed already, for another of their callers. */
  private readonly failedCalls = new WeakSet<object>()
  private readonly lostMs: number
  private readonly random: () => number

  /** @param lostMs after which a probe counts as lost. */
  constructor(lostMs: number, random: () => number = Math.random) {
    this.lostMs = lostMs
    this.random = random
  }

  /** The round of a call that may be made now; else undefined. The caller must report how the call ended: `succeeded`, `failed` or `untried`. */
  attempt(nowMs: number): number | undefined {
    if (this.state === 'closed') return this.round
    if (this.leftMs(nowMs) > 0) return undefined
    this.state = 'probing'
    this.probedMs = nowMs
    return ++this.round
  }

  /** Milliseconds until the next call may be made; 0 for now. */
  leftMs(nowMs: number): number {
    switch (this.state) {
      case 'closed':
        return 0
      case 'open': {
        const leftMs = this.opensMs - nowMs
        // More than a pause: the clock was put back.
        return leftMs > LONGEST_PAUSE_MS ? 0 : Math.max(0, leftMs)
      }
      case 'probing':
        // When it ends is not known.
        return nowMs >= this.probedMs && nowMs < this.probedMs + this.lostMs ? 1 : 0
    }
  }

  /** Whether calls are refused, but for probes. */
  get isOpen(): boolean {
    return this.state !== 'closed'
  }

  /** Whether the circuit is open, and a call failed of late. */
  isOutAt(nowMs: number): boolean {
    return this.isOpen && nowMs < this.opensMs + KNOWN_MS
  }

  /** Whether the last call failed, and of late. */
  isFailingAt(nowMs: number): boolean {
    return this.failures > 0 && nowMs < this.failedMs + KNOWN_MS
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
    this.state = 'closed'
    this.failures = 0
    this.lastFault = undefined
    return wasOpen
  }

  /**
   * True if this opened the circuit.
   *
   * @param call what several callers made together: it fails once, unless it is a probe.
   */
  failed(nowMs: number, round: number, fault?: unknown, call?: object): boolean {
    if (round !== this.round || this.state === 'open') return false
    const wasClosed = this.state === 'closed'
    if (call !== undefined) {
      if (wasClosed && this.failedCalls.has(call)) return false
      this.failedCalls.add(call)
    }
    this.lastFault = fault
    this.failures++
    this.failedMs = nowMs
    if (this.failures < MOST_FAILURES) return false
    this.state = 'open'
    this.round++
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - MOST_FAILURES))
    this.opensMs = nowMs + pauseMs * (1 - this.random() / 2)
    return wasClosed
  }

  /** The call was not made. */
  untried(round: number): void {
    if (round === this.round && this.state === 'probing') this.state = 'open'
  }
}
