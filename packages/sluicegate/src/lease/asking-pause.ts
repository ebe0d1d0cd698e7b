import type { Grant } from './grant.js'

/** A denial that is known for longer is looked at again, as somebody may have changed the key by hand. */
export const LONGEST_UNASKED_HORIZONS = 20
/** Where others may give back what they do not spend, that is looked for once a lease of theirs is over, then less and less often. */
const SHORTEST_UNASKED_HORIZONS = 2

/** When nobody asks ahead of need. */
export class AskingPause {
  untilUs = 0
  private readonly horizonUs: number
  /** After how long it is looked whether others gave something back. */
  private unaskedUs: number

  constructor(horizonUs: number) {
    this.horizonUs = horizonUs
    this.unaskedUs = SHORTEST_UNASKED_HORIZONS * horizonUs
  }

  end(): void {
    this.untilUs = 0
  }

  /** Before there may be something; each time that there was nothing, of what others may give back, for longer. */
  begin({ askAfterUs, blockedUs, flowsBack, availableNow, availableLater }: Grant, nowUs: number): void {
    const longestUs = LONGEST_UNASKED_HORIZONS * this.horizonUs
    if (availableNow + availableLater > 0) this.unaskedUs = SHORTEST_UNASKED_HORIZONS * this.horizonUs
    const mostUs = flowsBack || blockedUs > 0 ? longestUs : this.unaskedUs
    this.unaskedUs = Math.min(2 * this.unaskedUs, longestUs)
    this.untilUs = nowUs + Math.min(Math.max(askAfterUs, blockedUs), mostUs)
  }

  /** The authority could not be asked. */
  failed(nowUs: number): void {
    this.untilUs = nowUs + this.horizonUs
  }
}
