import type { Grant } from './grant.js'

/** A refill is due when this share of the last grant is left. */
const LOW_SHARE = 0.25
/** The shortest span over which demand is measured. */
const LEAST_SPAN_US = 1_000
/** Requests exceed demand by this factor. */
const RESERVE = 1.25
/** The share of the backend's remaining tokens requested beyond what was spent, where tokens do not flow back by themselves. */
const SHARE_OF_REST = 1 / 8
/** The measured pace is void after this many horizons without a lease. */
const PACE_HORIZONS = 2

/** The demand for a key in one process, and how many tokens to lease ahead for it. */
export class LeaseDemand {
  private readonly horizonUs: number
  /** Tokens that callers wait for now. */
  private waiting = 0
  /** Tokens requested by takes since the last lease, the smallest cost among them, and since when. */
  private asked = 0
  private leastCost = Number.POSITIVE_INFINITY
  private sinceUs: number
  /** How long of that callers waited, up to the last lease, and since when they wait now. */
  private waitedUs = 0
  private waitingSinceUs = 0
  /** Tokens of the last grant, and tokens spent since it came. */
  private granted = 0
  private used = 0
  /** The most tokens to request, unless callers wait for more. */
  private most = 1
  /** Tokens per microsecond. */
  private pace = 0

  constructor(nowUs: number, horizonUs: number) {
    this.sinceUs = nowUs
    this.horizonUs = horizonUs
  }

  /** Counts the cost of a take, once. */
  ask(cost: number): void {
    this.asked += cost
    if (cost < this.leastCost) this.leastCost = cost
  }

  /** Counts a take that waits for the next lease, until {@link leave}. */
  join(cost: number, nowUs: number): void {
    if (this.waiting === 0) this.waitingSinceUs = nowUs
    this.waiting += cost
    if (cost < this.leastCost) this.leastCost = cost
  }

  leave(cost: number): void {
    this.waiting -= cost
  }

  get isWaitedFor(): boolean {
    return this.waiting > 0
  }

  spent(tokens: number): void {
    this.used += tokens
  }

  /** Notes a grant, which ends the measured span. */
  given(tokens: number, nowUs: number): void {
    this.granted = tokens
    this.used = 0
    this.waitedUs += this.waitingFor(nowUs)
    this.waitingSinceUs = nowUs
  }

  /** Whether the measured pace is still valid. A key that was forgotten sooner would request one token at a time for ever. */
  isRecent(nowUs: number): boolean {
    return nowUs - this.sinceUs <= PACE_HORIZONS * this.horizonUs
  }

  /** Whether so few tokens are left that a refill is due. */
  isLow(left: number): boolean {
    return this.asked > 0 && left <= LOW_SHARE * this.granted
  }

  /**
   * Tokens to request beside those held: the demand of one horizon at the measured pace. If tokens were left unspent, the next request is
   * smaller; it is at most twice the spent tokens, so that little is lost when demand ends. A short grant does not make the next request smaller.
   *
   * @param rest tokens left at the backend for all processes, as far as is known.
   */
  wanted(nowUs: number, ready: number, rest = Number.POSITIVE_INFINITY): { readonly want: number; readonly least: number } {
    const { waiting, horizonUs, granted, used } = this
    const spanUs = nowUs - this.sinceUs
    // A waiting caller takes nothing more: while a lease is on its way demand does not show.
    const servedUs = Math.max(LEAST_SPAN_US, spanUs - this.waitedUs - this.waitingFor(nowUs))
    this.pace = Math.max(this.asked / servedUs, this.isRecent(nowUs) ? this.pace / 2 : 0)
    if (granted > 0) this.most = Math.max(2 * used, 2 * used >= granted ? this.most : this.most / 2)
    const least = this.leastCost === Number.POSITIVE_INFINITY ? 1 : Math.max(1, this.leastCost - ready)
    // With nothing left, spent tokens show supply, not demand: following them would shrink each request. A share is not needed then either, as
    // no process is granted more than what flowed back meanwhile.
    const share = rest > 0 ? used + Math.ceil(rest * SHARE_OF_REST) : Number.POSITIVE_INFINITY
    const foreseen = Math.min(Math.ceil(this.pace * horizonUs * RESERVE), Math.floor(this.most), share)
    this.asked = 0
    this.leastCost = Number.POSITIVE_INFINITY
    this.sinceUs = nowUs
    this.waitedUs = 0
    this.waitingSinceUs = nowUs
    return { want: Math.max(least, waiting, foreseen), least }
  }

  private waitingFor(nowUs: number): number {
    return this.waiting > 0 ? Math.max(0, nowUs - this.waitingSinceUs) : 0
  }
}

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
