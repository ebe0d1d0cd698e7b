import type { Decision } from '../decision.js'

/**
 * The denial that was told last, for as long as no word of it changes: who is denied a million times a second is denied a thousand times in
 * each millisecond.
 */
export class ToldDenial {
  private decision: Decision | undefined
  private cost = 0
  private fromUs = 0
  private untilUs = 0

  /** What would be told now of that cost, if it is known. */
  at(nowUs: number, cost: number): Decision | undefined {
    return nowUs < this.untilUs && nowUs >= this.fromUs && cost === this.cost ? this.decision : undefined
  }

  /**
   * @param deniedUntilUs when the cost passes, and `newAtUs` when the key is as good as new: both are told in whole milliseconds.
   * @param otherwiseUs when anything else may change.
   */
  keep(decision: Decision, cost: number, nowUs: number, deniedUntilUs: number, newAtUs: number, otherwiseUs: number): void {
    const { retryAfterMs, resetAfterMs } = decision
    const resetUs = resetAfterMs > 0 ? lastOf(newAtUs, resetAfterMs) : Number.POSITIVE_INFINITY
    this.decision = decision
    this.cost = cost
    this.fromUs = nowUs
    this.untilUs = Math.min(lastOf(deniedUntilUs, retryAfterMs), resetUs, otherwiseUs)
  }

  forget(): void {
    this.decision = undefined
  }
}

/** Until when so many milliseconds are told of what is due then. */
function lastOf(dueUs: number, toldMs: number): number {
  return dueUs - (toldMs - 1) * 1000
}
