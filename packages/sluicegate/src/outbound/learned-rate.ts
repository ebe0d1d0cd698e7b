/** What is kept of the rate when it turned out to be too high. */
const KEPT = 0.85
/** What was accepted is near what was refused, if it is so much of it: the rest is the rise of the curve, and the last pause. */
const NEAR = 0.7
/** What was accepted longer ago than this counts less and less. */
const MEMORY_MS = 60_000

/**
 * A rate found out by being refused: it falls by a factor, and then rises along a cubic curve, fast to where it was refused, slowly around
 * there, and faster again beyond, so that most of the time goes by near what the other side accepts. (A straight rise from the half, as TCP
 * once had it, would spend three quarters of it on average.) Where the curve is to level out is first found by what was accepted from one
 * refusal to the next, whatever kind of limit it is that refuses.
 *
 * Pure: times are readings in milliseconds. Source: RFC 9438, section 4.2, with rates in place of windows.
 */
export class LearnedRate {
  private readonly recoverMs: number
  /** Requests per millisecond at which it was last refused. */
  private capacity = Number.POSITIVE_INFINITY
  private loweredMs = Number.NEGATIVE_INFINITY
  private sinceMs: number | undefined
  private accepted = 0

  /** @param recoverMs after a refusal: until the rate is what it was. */
  constructor(recoverMs: number) {
    this.recoverMs = recoverMs
  }

  /** Requests per millisecond, `Infinity` as long as nothing was refused. */
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

  /** Time in which nobody wanted anything says nothing about the rate. */
  skip(idleMs: number): void {
    if (this.sinceMs !== undefined) this.sinceMs += idleMs
  }

  /**
   * A request sent at `sentMs` was refused. `known`: it was sent before the rate was last lowered, and says nothing new. `stuck`: nothing was
   * accepted since the rate was last lowered, so that a lower one would not help. `lowered`: it was.
   */
  refuse(sentMs: number, nowMs: number): 'known' | 'stuck' | 'lowered' {
    if (sentMs < this.loweredMs) return 'known'
    const isStuck = this.accepted === 0
    // Never so low that nobody would notice when it gets better.
    if (!isStuck) this.capacity = Math.max(1 / MEMORY_MS, this.found(nowMs))
    this.loweredMs = nowMs
    if (isStuck) return 'stuck'
    this.accepted = 0
    this.sinceMs = nowMs
    return 'lowered'
  }

  /** Between what was accepted and what was refused. Far apart they leave it open, as pauses count for the former: then it is searched for. */
  private found(nowMs: number): number {
    const measured = this.accepted / Math.max(1, nowMs - (this.sinceMs ?? nowMs))
    const refused = this.perMs(nowMs)
    if (refused === Number.POSITIVE_INFINITY) return measured
    return measured < NEAR * refused ? Math.sqrt(measured * refused) : refused
  }
}
