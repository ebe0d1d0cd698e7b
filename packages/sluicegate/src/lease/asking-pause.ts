import type { Grant } from './grant.js'

/** A cached denial is checked again after this long: a verb in another process may have changed the key. */
export const LONGEST_UNASKED_HORIZONS = 20
/** Where other processes may return tokens, look for these after one lease, then less and less often. */
const SHORTEST_UNASKED_HORIZONS = 2

/** When this process asks for no tokens ahead of need. */
export class AskingPause {
  untilUs = 0
  private readonly horizonUs: number
  /** How long until it looks for returned tokens. */
  private unaskedUs: number

  constructor(horizonUs: number) {
    this.horizonUs = horizonUs
    this.unaskedUs = SHORTEST_UNASKED_HORIZONS * horizonUs
  }

  end(): void {
    this.untilUs = 0
  }

  /** Pauses until tokens may be free; longer each time that none were returned. */
  begin({ askAfterUs, blockedUs, flowsBack, availableNow, availableLater }: Grant, nowUs: number): void {
    const longestUs = LONGEST_UNASKED_HORIZONS * this.horizonUs
    if (availableNow + availableLater > 0) this.unaskedUs = SHORTEST_UNASKED_HORIZONS * this.horizonUs
    const mostUs = flowsBack || blockedUs > 0 ? longestUs : this.unaskedUs
    this.unaskedUs = Math.min(2 * this.unaskedUs, longestUs)
    this.untilUs = nowUs + Math.min(Math.max(askAfterUs, blockedUs), mostUs)
  }

  /** The backend could not be reached. */
  failed(nowUs: number): void {
    this.untilUs = nowUs + this.horizonUs
  }
}
