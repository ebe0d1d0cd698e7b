import type { Decision } from '../decision.js'

/**
 * The last denial, reused as long as none of its fields changes: a key denied a million times a second gets the same decision a thousand
 * times in each millisecond.
 */
export class ToldDenial {
  private decision: Decision | undefined
  private cost = 0
  private fromUs = 0
  private untilUs = 0

  /** The cached denial of `cost`, if it still holds. */
  at(nowUs: number, cost: number): Decision | undefined {
    return nowUs < this.untilUs && nowUs >= this.fromUs && cost === this.cost ? this.decision : undefined
  }

  /**
   * @param deniedUntilUs when the cost passes; `newAtUs` when the key is full. The decision has both in whole milliseconds.
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

/** Until when the distance to `dueUs` rounds up to `toldMs` milliseconds. */
function lastOf(dueUs: number, toldMs: number): number {
  return dueUs - (toldMs - 1) * 1000
}
