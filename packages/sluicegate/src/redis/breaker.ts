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
export class Breaker {
  private failures = 0
  private opensMs = 0
  private isProbing = false
  private readonly random: () => number

  constructor(random: () => number = Math.random) {
    this.random = random
  }

  /** Whether a call may be tried now; whoever is told so has to say what came of it. */
  admits(nowMs: number): boolean {
    if (this.failures < MOST_FAILURES) return true
    if (this.isProbing || nowMs < this.opensMs) return false
    this.isProbing = true
    return true
  }

  /** Milliseconds until it admits the next call, 0 when it does now. */
  leftMs(nowMs: number): number {
    return this.failures < MOST_FAILURES ? 0 : Math.max(this.isProbing ? 1 : 0, this.opensMs - nowMs)
  }

  /** Whether what is asked for is decided elsewhere for now. */
  get isOpen(): boolean {
    return this.failures >= MOST_FAILURES
  }

  /** Answers whether it had failed before. */
  succeeded(): boolean {
    const hadFailed = this.failures > 0
    this.failures = 0
    this.isProbing = false
    return hadFailed
  }

  failed(nowMs: number): void {
    this.failures++
    this.isProbing = false
    if (this.failures < MOST_FAILURES) return
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - MOST_FAILURES))
    this.opensMs = nowMs + pauseMs * (1 - this.random() / 2)
  }
}
