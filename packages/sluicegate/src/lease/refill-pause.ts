import type { Grant } from './grant.js'

/** A cached denial is checked again after this long: a verb in another process may have changed the key. */
export const LONGEST_PAUSE_HORIZONS = 20
/** Where other processes may return tokens, look for these after one lease, then less and less often. */
const SHORTEST_PAUSE_HORIZONS = 2

/** A time in which this process requests no tokens ahead of need, nor looks again whether a denial still holds. */
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
  begin({ untilFreeUs, blockedUs, flowsBack, tokens }: Grant, nowUs: number): void {
    const longestUs = LONGEST_PAUSE_HORIZONS * this.horizonUs
    if (tokens > 0) this.pauseUs = SHORTEST_PAUSE_HORIZONS * this.horizonUs
    const mostUs = flowsBack || blockedUs > 0 ? longestUs : this.pauseUs
    this.pauseUs = Math.min(2 * this.pauseUs, longestUs)
    this.untilUs = nowUs + Math.min(Math.max(untilFreeUs, blockedUs), mostUs)
  }

  /** The backend could not be reached. */
  failed(nowUs: number): void {
    this.untilUs = nowUs + this.horizonUs
  }
}

/** A pause of scarcity, in leases: at least, at least for a process that leases several tokens, and at most. */
const [SHORTEST, SHORTEST_OF_SEVERAL, LONGEST] = [1 / 32, 0.5, 1]
/** How much longer a pause is after each request in vain; how many more requests a lease after each other one. */
const [LONGER, MORE] = [2, 1]

/**
 * How long a process that got less than it wanted leaves the backend alone. Meanwhile tokens gather there, so that about every second request
 * brings some, however high the demand of the fleet. Halving the rate of requests after one in vain, and adding to it after the others, gives
 * all processes the same rate in the long run; the random part keeps them apart.
 */
export class Scarcity {
  private readonly leaseUs: number
  private readonly random: () => number
  private leases = 0

  constructor(leaseUs: number, random: () => number) {
    this.leaseUs = leaseUs
    this.random = random
  }

  /** @returns how long to wait after an answer. */
  pauseUs(granted: number, want: number): number {
    const { leases } = this
    if (granted === 0) this.leases = Math.min(LONGEST, Math.max(SHORTEST, LONGER * leases))
    else this.leases = leases > SHORTEST ? leases / (1 + MORE * leases) : 0
    if (granted >= want) return 0
    // A first denial says exactly when the request would pass.
    const pauseLeases = leases === 0 ? 0 : this.leases
    return (0.5 + this.random()) * Math.max(pauseLeases, want > 1 && granted > 0 ? SHORTEST_OF_SEVERAL : 0) * this.leaseUs
  }
}
