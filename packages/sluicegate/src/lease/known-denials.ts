/** Of so many costs it is remembered until when they are denied. */
const MOST_SAID = 8

/** What the authority said of a number of tokens. */
interface Said {
  readonly tokens: number
  readonly untilUs: number
}

/**
 * Until when the authority denies how many tokens, as far as it said so. Who asks for more is denied at least as long, until others give
 * something back: what was said is to be asked for anew after a while.
 */
export class KnownDenials {
  private said: Said[] = []
  private readonly longestUs: number

  /** @param longestUs what was said is believed for at most so long. */
  constructor(longestUs: number) {
    this.longestUs = longestUs
  }

  add(tokens: number, untilUs: number, nowUs: number): void {
    const last = Math.min(untilUs, nowUs + this.longestUs)
    if (last <= nowUs) return
    this.said = this.said.filter((other) => other.untilUs > nowUs && other.tokens !== tokens).slice(1 - MOST_SAID)
    this.said.push({ tokens, untilUs: last })
  }

  /** So many tokens passed, or would have. */
  passed(tokens: number): void {
    if (this.said.some((other) => other.tokens <= tokens)) this.said = this.said.filter((other) => other.tokens > tokens)
  }

  clear(): void {
    if (this.said.length > 0) this.said = []
  }

  /** Until when so many are denied; 0 when nothing is known. */
  until(tokens: number): number {
    let untilUs = 0
    for (const other of this.said) if (other.tokens <= tokens && other.untilUs > untilUs) untilUs = other.untilUs
    return untilUs
  }
}
