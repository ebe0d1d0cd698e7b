import type { TokenRequest } from './grant.js'

/** Leases over which the pace is an average; the newest weigh most. */
const PACE_LEASES = 0.5
/** How much of the demand of the coming lease is leased: at first, at least and at most. */
const [FIRST_SHARE, LEAST_SHARE, MOST_SHARE] = [0.1, 0.002, 1]
/** Below it callers that wait together are no lease either: the last one came when it had ended. */
const SHARE_OF_NONE = 0.01
/** The tolerated part of each lease that expires unspent; and so much more with a full budget, falling to none at three quarters of it. */
const [WASTE, WASTE_OF_PLENTY, PLENTY] = [0.01, 0.03, 0.75]
/** Fewer tokens are not leased: the backend decides each take by itself. */
const FEWEST = 2
/** A lease of at least N tokens is renewed ahead of need, when this part of it is left. */
const [RENEWED_FROM, LOW] = [64, 0.25]
/** The part of the backend's remaining tokens that is leased at most, where tokens do not flow back by themselves. */
const MOST_OF_REST = 1 / 8

/**
 * The demand for a key in one process, and how many tokens to lease for it.
 *
 * A token that expires unspent is lost to the fleet. So a process leases a share of what callers will probably take within a lease, and
 * corrects that share by what became of its leases: up a little with each, down by the part of it that expired. In the long run the part
 * that expires is the tolerated one, whatever the pattern of demand. Where the share comes to less than {@link FEWEST} tokens, the
 * backend decides each take, which wastes nothing.
 */
export class LeaseDemand {
  private readonly leaseUs: number
  /** Callers that wait now, and the tokens that they wait for. */
  private waiters = 0
  private waiting = 0
  /** Tokens requested by takes since the pace was measured, the smallest cost among them, and since when. */
  private requested = 0
  /** Tokens requested by takes that the backend does not know of. */
  private unreported = 0
  private leastCost = Number.POSITIVE_INFINITY
  private sinceUs: number
  /** How long of that callers waited, up to the last lease, and since when they wait now. */
  private waitedUs = 0
  private waitingSinceUs = 0
  /** Tokens per microsecond. */
  private pace = 0
  /** The share of the demand of a lease that is leased, and the part of leases that may expire. */
  private share = FIRST_SHARE
  private tolerated = WASTE
  /** A refill is due when so few are left. */
  private lowAt = -1

  /** @param leaseUs the length of a lease. */
  constructor(nowUs: number, leaseUs: number) {
    this.sinceUs = nowUs
    this.leaseUs = leaseUs
  }

  /** Counts the cost of a take, once. */
  request(cost: number): void {
    this.requested += cost
    if (cost < this.leastCost) this.leastCost = cost
  }

  /** Counts a take that waits for the next lease, until {@link leave}. */
  join(cost: number, nowUs: number): void {
    if (this.waiters++ === 0) this.waitingSinceUs = nowUs
    this.waiting += cost
    if (cost < this.leastCost) this.leastCost = cost
  }

  leave(cost: number): void {
    this.waiters--
    this.waiting -= cost
  }

  get isWaitedFor(): boolean {
    return this.waiters > 0
  }

  /**
   * Notes a grant.
   *
   * @param budget the part of the whole budget that is left at the backend.
   */
  given(tokens: number, budget: number, nowUs: number): void {
    this.lowAt = tokens >= RENEWED_FROM ? LOW * tokens : -1
    this.waitedUs += this.waitingFor(nowUs)
    this.waitingSinceUs = nowUs
    if (tokens > 0) this.charged(budget)
  }

  /** Tokens were charged: a lease, or one take by the backend alone. */
  charged(budget: number): void {
    this.tolerated = WASTE + WASTE_OF_PLENTY * Math.max(0, (budget - PLENTY) / (1 - PLENTY))
    this.correct(this.tolerated)
  }

  /** A part of a lease expired unspent. */
  wasted(part: number): void {
    this.correct(-part)
  }

  /** A lease came when it had ended: over such a network nearly nothing is leased ahead. */
  late(): void {
    this.share = LEAST_SHARE
  }

  /** Whether the measured pace is still valid. A key that was forgotten sooner would never be leased. */
  isRecent(nowUs: number): boolean {
    return nowUs - this.sinceUs <= this.leaseUs
  }

  /** Whether so few tokens are left that a refill is due. */
  isLow(left: number): boolean {
    return left <= this.lowAt && this.requested > 0
  }

  /**
   * Tokens to request beside those held.
   *
   * @param left tokens that are held.
   * @param rest tokens left at the backend for all processes, as far as is known.
   */
  wanted(nowUs: number, left: number, rest = Number.POSITIVE_INFINITY): Omit<TokenRequest, 'sentUs'> {
    const { waiting } = this
    const foreseen = this.foreseen(nowUs, left, rest)
    this.measure(nowUs)
    const least = this.leastCost === Number.POSITIVE_INFINITY ? 1 : Math.max(1, this.leastCost - left)
    this.leastCost = Number.POSITIVE_INFINITY
    return { want: Math.min(Math.max(least, waiting, foreseen), Number.MAX_SAFE_INTEGER), least, isLease: foreseen > 0 || this.areTogether }
  }

  /** Tokens requested since the last report, denied ones among them: the backend is about to hear of them. */
  report(): number {
    const { unreported } = this
    this.unreported = 0
    return unreported
  }

  /** Whether {@link wanted} would be a lease. */
  isLeased(nowUs: number, left: number, rest: number): boolean {
    return this.areTogether || this.foreseen(nowUs, left, rest) > 0
  }

  /** Whether callers wait whose tokens one lease brings. */
  private get areTogether(): boolean {
    return this.waiters > 1 && this.share >= SHARE_OF_NONE
  }

  /** Tokens to lease ahead of need, 0 where they would be too few. */
  private foreseen(nowUs: number, left: number, rest: number): number {
    // With nothing left no process is granted more than what flowed back meanwhile.
    const most = rest > 0 ? Math.ceil(rest * MOST_OF_REST) : Number.POSITIVE_INFINITY
    const tokens = Math.min(Math.floor(this.share * this.paceAt(nowUs) * this.leaseUs) - left, most)
    return tokens >= FEWEST ? tokens : 0
  }

  private paceAt(nowUs: number): number {
    // A waiting caller takes nothing more: while a lease is on its way demand does not show.
    const servedUs = Math.max(1, nowUs - this.sinceUs - this.waitedUs - this.waitingFor(nowUs))
    const weight = -Math.expm1(-servedUs / (PACE_LEASES * this.leaseUs))
    return this.pace + weight * (this.requested / servedUs - this.pace)
  }

  private measure(nowUs: number): void {
    this.pace = this.paceAt(nowUs)
    this.unreported += this.requested
    this.requested = 0
    this.sinceUs = nowUs
    this.waitedUs = 0
    this.waitingSinceUs = nowUs
  }

  private correct(part: number): void {
    this.share = Math.min(MOST_SHARE, Math.max(LEAST_SHARE, this.share * Math.exp(part)))
  }

  private waitingFor(nowUs: number): number {
    return this.waiters > 0 ? Math.max(0, nowUs - this.waitingSinceUs) : 0
  }
}
