/** The share of the rate that remains after a refusal. */
const KEPT = 0.85
/**
 * If at least this share of the refused rate was accepted, the accepted rate is taken to be near it: the difference comes from the curve
 * and from the last pause.
 */
const NEAR = 0.7
/** Accepted requests that are older count less and less. */
const MEMORY_MS = 60_000

/**
 * A rate learned from refusals: it falls by a factor, then rises along a cubic curve: fast to the rate that was refused, slowly around it,
 * and faster again beyond, so that most of the time is spent near what the server accepts. (A linear rise from one half, as in early TCP,
 * would reach three quarters on average.) The level of the curve is estimated from the requests that were accepted between two refusals,
 * whatever kind of limit refuses.
 *
 * Pure: times are readings in milliseconds. Source: RFC 9438, section 4.2, with rates in place of windows.
 */
export class LearnedRate {
  private readonly recoverMs: number
  /** Requests per millisecond at the last refusal. */
  private capacity = Number.POSITIVE_INFINITY
  private loweredMs = Number.NEGATIVE_INFINITY
  private sinceMs: number | undefined
  private accepted = 0

  /** @param recoverMs time after a refusal until the rate is what it was. */
  constructor(recoverMs: number) {
    this.recoverMs = recoverMs
  }

  /** Requests per millisecond; `Infinity` before the first refusal. */
  perMs(nowMs: number): number {
    if (this.capacity === Number.POSITIVE_INFINITY) return this.capacity
    const x = Math.max(-1, (nowMs - this.loweredMs) / this.recoverMs - 1)
    return this.capacity * (1 + (1 - KEPT) * x ** 3)
  }

  sent(nowMs: number): void {
    this.sinceMs ??= nowMs
  }

  accept(nowMs: number): void {
    this.accepted++
    const forMs = nowMs - (this.sinceMs ?? nowMs)
    if (forMs < 2 * MEMORY_MS) return
    this.accepted /= 2
    this.sinceMs = nowMs - forMs / 2
  }

  /** Idle time does not count for the measured rate. */
  skip(idleMs: number): void {
    if (this.sinceMs !== undefined) this.sinceMs += idleMs
  }

  /**
   * A request sent at `sentMs` was refused. `known`: it was sent before the rate was last lowered, and says nothing new. `stuck`: nothing
   * was accepted since then, so that a lower rate would not help. `lowered`: the rate was lowered.
   */
  refuse(sentMs: number, nowMs: number): 'known' | 'stuck' | 'lowered' {
    if (sentMs < this.loweredMs) return 'known'
    const isStuck = this.accepted === 0
    // A lower rate would be too slow to detect an improvement.
    if (!isStuck) this.capacity = Math.max(1 / MEMORY_MS, this.found(nowMs))
    this.loweredMs = nowMs
    if (isStuck) return 'stuck'
    this.accepted = 0
    this.sinceMs = nowMs
    return 'lowered'
  }

  /**
   * A rate between the accepted and the refused one. If they are far apart, as the accepted rate includes pauses, their geometric mean: a
   * search.
   */
  private found(nowMs: number): number {
    const measured = this.accepted / Math.max(1, nowMs - (this.sinceMs ?? nowMs))
    const refused = this.perMs(nowMs)
    if (refused === Number.POSITIVE_INFINITY) return measured
    return measured < NEAR * refused ? Math.sqrt(measured * refused) : refused
  }
}
