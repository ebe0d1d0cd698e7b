import type { Grant } from './grant.js'

/** A cached denial is checked again after this long: a verb in another process may have changed the key. */
export const LONGEST_PAUSE_HORIZONS = 20
/** Where other processes may return tokens, look for these after one lease, then less and less often. */
const SHORTEST_PAUSE_HORIZONS = 2

/** A time in which this process requests no tokens ahead of need. */
export class RefillPause {
  untilUs = 0
  private readonly horizonUs: number
  /** How long until it looks for returned tokens. */
  private pauseUs: number

  constructor(horizonUs: number) {
    this.horizonUs = horizonUs
    this.pauseUs = SHORTEST_PAUSE_HORIZONS * horizonUs
  }

  end(): void {
    this.untilUs = 0
  }

  /** Pauses until tokens may be free; longer each time that none were returned. */
  begin({ askAfterUs, blockedUs, flowsBack, availableNow, availableLater }: Grant, nowUs: number): void {
    const longestUs = LONGEST_PAUSE_HORIZONS * this.horizonUs
    if (availableNow + availableLater > 0) this.pauseUs = SHORTEST_PAUSE_HORIZONS * this.horizonUs
    const mostUs = flowsBack || blockedUs > 0 ? longestUs : this.pauseUs
    this.pauseUs = Math.min(2 * this.pauseUs, longestUs)
    this.untilUs = nowUs + Math.min(Math.max(askAfterUs, blockedUs), mostUs)
  }

  /** The backend could not be reached. */
  failed(nowUs: number): void {
    this.untilUs = nowUs + this.horizonUs
  }
}
