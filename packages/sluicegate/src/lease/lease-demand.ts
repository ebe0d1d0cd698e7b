/** Of what was handed out last, so much is left when more is fetched. */
const LOW_SHARE = 0.25
/** Demand is looked at over at least this long. */
const LEAST_SPAN_US = 1_000
/** Demand is met a little more than in full. */
const RESERVE = 1.25
/** Of what the authority has left, where that does not flow back by itself soon, so much is asked for beyond what was spent of the last lease. */
const SHARE_OF_REST = 1 / 8
/** The pace of before says nothing after so many horizons without a lease. */
const PACE_HORIZONS = 2

/** How much is asked of a key in one process, and how much of that it pays to fetch ahead. */
export class LeaseDemand {
  private readonly horizonUs: number
  /** Tokens for which callers wait now. */
  private waiting = 0
  /** Tokens asked for here since the last lease was fetched, the smallest cost among them, and since when. */
  private asked = 0
  private leastCost = Number.POSITIVE_INFINITY
  private sinceUs: number
  /** For how long of that somebody waited, up to the last lease, and since when somebody does. */
  private waitedUs = 0
  private waitingSinceUs = 0
  /** Tokens of the last lease, and what was spent since it came. */
  private granted = 0
  private used = 0
  /** At most so many are asked for, unless more are waited for. */
  private most = 1
  /** Tokens a microsecond. */
  private pace = 0

  constructor(nowUs: number, horizonUs: number) {
    this.sinceUs = nowUs
    this.horizonUs = horizonUs
  }

  /** Notes what is asked for, once each. */
  ask(cost: number): void {
    this.asked += cost
    if (cost < this.leastCost) this.leastCost = cost
  }

  /** Notes who waits for the next lease, until {@link leave}. */
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

  /** Notes what a lease held, and that those who waited were served. */
  given(tokens: number, nowUs: number): void {
    this.granted = tokens
    this.used = 0
    this.waitedUs += this.waitingFor(nowUs)
    this.waitingSinceUs = nowUs
  }

  /** Whether the pace that was seen still says something: a key that is forgotten sooner would ask for a token at a time for ever. */
  isRecent(nowUs: number): boolean {
    return nowUs - this.sinceUs <= PACE_HORIZONS * this.horizonUs
  }

  /** Whether so little is left that more should be fetched for those who will ask soon. */
  isLow(left: number): boolean {
    return this.asked > 0 && left <= LOW_SHARE * this.granted
  }

  /**
   * What to ask for beside the tokens that are here: the demand of a horizon, as it was since the last time. Of what was not spent less is
   * asked for the next time, and at most twice what was, so that little is lost when demand ends; being given too little is no reason to
   * want less.
   *
   * @param rest what the authority has left for all, as far as that is known.
   */
  wanted(nowUs: number, ready: number, rest = Number.POSITIVE_INFINITY): { readonly want: number; readonly least: number } {
    const { waiting, horizonUs, granted, used } = this
    const spanUs = nowUs - this.sinceUs
    // Who waits asks for nothing more: while a lease is on its way demand does not show.
    const servedUs = Math.max(LEAST_SPAN_US, spanUs - this.waitedUs - this.waitingFor(nowUs))
    this.pace = Math.max(this.asked / servedUs, this.isRecent(nowUs) ? this.pace / 2 : 0)
    if (granted > 0) this.most = Math.max(2 * used, 2 * used >= granted ? this.most : this.most / 2)
    const least = this.leastCost === Number.POSITIVE_INFINITY ? 1 : Math.max(1, this.leastCost - ready)
    // With nothing left, what was spent is what could be had and not what was needed: who went by it would want less each time. Nor is a share
    // needed then, as nobody is given more than what came back meanwhile.
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
