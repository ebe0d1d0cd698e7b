/** Costs whose denial is remembered. */
const MOST_SAID = 8

/** What the backend said of a number of tokens. */
interface Said {
  readonly tokens: number
  readonly untilUs: number
}

/**
 * Until when the backend denies how many tokens. A larger cost is denied at least as long, until other processes return tokens: so an entry
 * is believed for a limited time.
 */
export class KnownDenials {
  private said: Said[] = []
  private readonly longestUs: number

  /** @param longestUs how long an entry is believed. */
  constructor(longestUs: number) {
    this.longestUs = longestUs
  }

  add(tokens: number, untilUs: number, nowUs: number): void {
    const last = Math.min(untilUs, nowUs + this.longestUs)
    if (last <= nowUs) return
    this.said = this.said.filter((other) => other.untilUs > nowUs && other.tokens !== tokens).slice(1 - MOST_SAID)
    this.said.push({ tokens, untilUs: last })
  }

  /** `tokens` passed, or would have. */
  passed(tokens: number): void {
    if (this.said.some((other) => other.tokens <= tokens)) this.said = this.said.filter((other) => other.tokens > tokens)
  }

  clear(): void {
    if (this.said.length > 0) this.said = []
  }

  /** Until when `tokens` are denied; 0 when nothing is known. */
  until(tokens: number): number {
    let untilUs = 0
    for (const other of this.said) if (other.tokens <= tokens && other.untilUs > untilUs) untilUs = other.untilUs
    return untilUs
  }
}
