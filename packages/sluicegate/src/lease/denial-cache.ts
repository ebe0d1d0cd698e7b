import type { Decision } from '../decision/decision.js'

/**
 * The last denial, reused as long as none of its fields changes: a key denied a million times a second gets the same decision a thousand
 * times in each millisecond.
 */
export class CachedDenial {
  private decision: Decision | undefined
  private cost = 0
  private fromUs = 0
  private untilUs = 0

  /** The cached denial of `cost`, if it is still valid. */
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

/** Until when the distance to `dueUs` rounds up to `roundedMs` milliseconds. */
function lastOf(dueUs: number, roundedMs: number): number {
  return dueUs - (roundedMs - 1) * 1000
}

/** Costs with a cached time. */
const MAX_COSTS = 8

/**
 * Until when the backend denies a number of tokens. A larger cost is denied at least as long, until other processes return tokens: so an
 * entry is valid for a limited time.
 */
export class DenialTimes {
  /** `validUs`: until when it is believed. */
  private entries: { readonly tokens: number; readonly untilUs: number; readonly validUs: number }[] = []
  private readonly longestUs: number

  /** @param longestUs how long an entry is valid. */
  constructor(longestUs: number) {
    this.longestUs = longestUs
  }

  add(tokens: number, untilUs: number, nowUs: number): void {
    if (untilUs <= nowUs) return
    this.entries = this.entries.filter((other) => other.validUs > nowUs && other.tokens !== tokens).slice(1 - MAX_COSTS)
    this.entries.push({ tokens, untilUs, validUs: Math.min(untilUs, nowUs + this.longestUs) })
  }

  /** `tokens` passed, or would have. */
  passed(tokens: number): void {
    if (this.entries.some((other) => other.tokens <= tokens)) this.entries = this.entries.filter((other) => other.tokens > tokens)
  }

  clear(): void {
    if (this.entries.length > 0) this.entries = []
  }

  /** Until when `tokens` are denied; 0 when nothing is known. */
  until(tokens: number, nowUs: number): number {
    let untilUs = 0
    for (const other of this.entries) {
      if (other.tokens <= tokens && other.validUs > nowUs && other.untilUs > untilUs) untilUs = other.untilUs
    }
    return untilUs
  }
}
