import type { Grant, TokenRequest } from './grant.js'

const E = (globalThis as any).process?.env ?? {}
/** The length of a lease in horizons: how long a token may be spent. */
const LEASE_HORIZONS = 2
/** The pace is an average over this many leases, the newest weighing most. */
const PACE_LEASES = Number(E.PACE ?? 2)
/** The share of leased tokens that may expire unspent. */
const WASTE = Number(E.WASTE ?? 0.01)
const MORE = Number(E.MORE ?? 0.06)
const FROM = Number(E.FROM ?? 0.5)
/** How much of the demand of the coming lease is leased at first, and at least and at most. */
const [FIRST_SCALE, LEAST_SCALE, MOST_SCALE] = [Number(E.FIRST ?? 0.2), 0.002, Number(E.MOST ?? 1)]
/** Fewer tokens are not leased: the backend decides each take by itself. */
const FEWEST = 2
/** A lease of so many tokens is renewed ahead of need, when this share is left. */
const [RENEWED_FROM, LOW_SHARE] = [Number(E.REN ?? 64), 0.25]
/** The share of the backend's remaining tokens requested, where tokens do not flow back by themselves. */
const SHARE_OF_REST = 1 / 8

/** The demand for a key in one process, and how many tokens to lease ahead for it. */
export class LeaseDemand {
  private readonly leaseUs: number
  /** Tokens that callers wait for now. */
  private waiting = 0
  private waiters = 0
  /** Tokens requested by takes since the pace was measured, the smallest cost among them, and since when. */
  private asked = 0
  private leastCost = Number.POSITIVE_INFINITY
  private sinceUs: number
  /** How long of that callers waited, up to the last lease, and since when they wait now. */
  private waitedUs = 0
  private waitingSinceUs = 0
  /** Tokens per microsecond. */
  private pace = 0
  /** The share of the demand of a lease that is leased. */
  private scale = FIRST_SCALE
  /** A refill is due when so few are left. */
  private lowAt = -1

  constructor(nowUs: number, horizonUs: number) {
    this.sinceUs = nowUs
    this.leaseUs = LEASE_HORIZONS * horizonUs
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
    this.waiters++
    if (cost < this.leastCost) this.leastCost = cost
  }

  leave(cost: number): void {
    this.waiting -= cost
    this.waiters--
  }

  get isWaitedFor(): boolean {
    return this.waiting > 0
  }

  /** Notes a grant. */
  given(tokens: number, nowUs: number, isShort = false): void {
    if (isShort) this.cap = Math.max(FEWEST, Number(E.CAP ?? 2) * tokens)
    else this.cap *= 2
    this.lowAt = tokens >= RENEWED_FROM ? LOW_SHARE * tokens : -1
    this.scaleBy(this.tolerated * tokens, Math.max(tokens, 1))
    this.waitedUs += this.waitingFor(nowUs)
    this.waitingSinceUs = nowUs
  }

  /** Tokens expired unspent. */
  wasted(tokens: number, of: number): void {
    this.scaleBy(-tokens, of)
  }

  /** A take was decided by the backend alone. */
  alone(): void {
    this.scaleBy(this.tolerated, 1)
  }

  private tolerated = WASTE

  /** @param share of what the backend holds at most: what is left there. */
  left(share: number): void {
    this.tolerated = WASTE + MORE * Math.max(0, (share - FROM) / (1 - FROM))
  }

  cap = Number.POSITIVE_INFINITY

  private scaleBy(tokens: number, of: number): void {
    this.scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, this.scale * Math.exp(tokens / of)))
  }

  /** Whether the measured pace is still valid. A key that was forgotten sooner would request one token at a time for ever. */
  isRecent(nowUs: number): boolean {
    return nowUs - this.sinceUs <= PACE_LEASES * this.leaseUs
  }

  /** Whether so few tokens are left that a refill is due. */
  isLow(left: number): boolean {
    return left <= this.lowAt && this.asked > 0
  }

  /**
   * Tokens to request beside those held.
   *
   * @param rest tokens left at the backend for all processes, as far as is known.
   */
  wanted(nowUs: number, ready: number, left: number, rest = Number.POSITIVE_INFINITY): Omit<TokenRequest, 'sentUs'> {
    const { waiting, waiters, leaseUs } = this
    // A waiting caller takes nothing more: while a lease is on its way demand does not show.
    const servedUs = Math.max(1, nowUs - this.sinceUs - this.waitedUs - this.waitingFor(nowUs))
    const weight = -Math.expm1(-servedUs / (PACE_LEASES * leaseUs))
    this.pace += weight * (this.asked / servedUs - this.pace)
    const least = this.leastCost === Number.POSITIVE_INFINITY ? 1 : Math.max(1, this.leastCost - ready)
    const share = rest > 0 ? Math.ceil(rest * SHARE_OF_REST) : Number.POSITIVE_INFINITY
    const foreseen = Math.min(Math.floor(this.scale * this.pace * leaseUs) - left, share, this.cap)
    const isWorthIt = foreseen >= FEWEST
    this.asked = 0
    this.leastCost = Number.POSITIVE_INFINITY
    this.sinceUs = nowUs
    this.waitedUs = 0
    this.waitingSinceUs = nowUs
    return { want: Math.max(least, waiting, isWorthIt ? foreseen : 0), least, isWorthIt: isWorthIt || waiters > 1 }
  }

  private waitingFor(nowUs: number): number {
    return this.waiting > 0 ? Math.max(0, nowUs - this.waitingSinceUs) : 0
  }
}

/** A cached denial is checked again after this long: a verb in another process may have changed the key. */
export const LONGEST_PAUSE_HORIZONS = 20
/** Where other processes may return tokens, look for these after one lease, then less and less often. */
const SHORTEST_PAUSE_HORIZONS = 2

/** A pause of scarcity is at least and at most so many leases long. */
const [SHORTEST_SCARCE, LONGEST_SCARCE] = [1 / 32, Number(E.LONGEST ?? 2)]
const SHORT = Number(E.SHORT ?? 0.4)

/** How long a process waits between two requests of which the first brought less than was wanted: so long that the next brings enough. */
export class Scarcity {
  private leases = 0

  /** @returns how long to wait. */
  after(granted: number, want: number, leaseUs: number, random = Math.random): number {
    const { leases } = this
    if (granted >= Math.min(want, GOAL)) this.leases = leases / (1 + GAIN * leases)
    else this.leases = Math.min(LONGEST_SCARCE, Math.max(SHORTEST_SCARCE, leases * 2))
    if (granted >= want) return 0
    return (0.5 + random()) * Math.max(this.leases, want > 1 ? SHORT : 0) * leaseUs
  }
}
const GOAL = Number(E.GOAL ?? 1)
const GAIN = Number(E.GAIN ?? 2)

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
