import type { Deposit, Deposited, Draw, Drawn, DrawTerms, Lot } from '../../../sluicegate/dist/regions/region-pool.js'

const POOL = { paceUs: 2_000_000, longestDenialUs: 2_000_000, leastStepUs: 1_000_000, soonUs: 50_000, mostLots: 8, stale: 3 }

/** Rules of a pool, of which mutants break one each. */
export interface PoolRules {
  readonly name: string
  /** When a lot ends, by the clock of the region's store. */
  endOf(deposit: Deposit, nowUs: number): number
  /** Whether ended tokens, and those from a time that is still to come, are void. */
  readonly voidsEnded: boolean
  readonly voidsAfterStep: boolean
  /** Whether tokens that go back to the home are void. */
  readonly voidsReclaimed: boolean
  /** Whether the time that a clock skipped is no time without demand. */
  readonly seesSteps: boolean
  /** No token lasts longer. */
  readonly longestUs: number
}

/** Those of `lua/scripts/region.lua`. */
export const SOUND_POOL: PoolRules = {
  name: 'sound',
  endOf: ({ claimedUs, lastUs, agoUs }, nowUs) => {
    const since = nowUs + lastUs - agoUs
    return claimedUs <= nowUs ? Math.min(claimedUs + lastUs, since) : since
  },
  voidsEnded: true,
  voidsAfterStep: true,
  voidsReclaimed: true,
  seesSteps: true,
  longestUs: 4_000_000,
}

/** What a region holds of one key: twin of `lua/scripts/region.lua`, without the time after which the key is forgotten. */
export class PoolTwin {
  private readonly rules: PoolRules
  private seenUs = 0
  private demand = 0
  private sinceUs = 0
  private pace = 0
  private claimedUs = 0
  private claimEndUs = 0
  private deniedUs = 0
  private deniedCost = 0
  private blockedUs = 0
  private owed = 0
  private rest = 0
  private fullUs = 0
  private total = 0
  private lots: { tokens: number; endUs: number }[] = []

  constructor(rules = SOUND_POOL) {
    this.rules = rules
  }

  draw(nowUs: number, { want, least, demand }: Draw, terms: DrawTerms): Drawn {
    const isPeek = demand === undefined
    const before = isPeek ? this.copy() : undefined
    this.read(nowUs)
    const { periodUs, leadUs, claimUs, leaseUs, foreseenUs } = terms
    if (this.sinceUs === 0) this.sinceUs = nowUs
    const skippedUs = foreseenUs > 0 ? nowUs - foreseenUs : 0
    if (this.rules.seesSteps && skippedUs > POOL.leastStepUs) {
      if (this.sinceUs <= foreseenUs) this.sinceUs += skippedUs
      if (this.claimedUs <= foreseenUs) this.claimedUs += skippedUs
    }
    this.demand += demand ?? 0
    const sinceUs = nowUs - this.sinceUs
    const pace = sinceUs > 0 ? this.pace + (1 - Math.exp(-sinceUs / POOL.paceUs)) * (this.demand / sinceUs - this.pace) : this.pace
    const agoUs = nowUs - this.claimedUs
    if (this.deniedUs <= nowUs && agoUs >= POOL.stale * periodUs) this.deniedUs = 0
    const isScarce = this.deniedUs > 0
    const isBlocked = this.blockedUs > nowUs
    const lots = isBlocked || this.left < least ? [] : this.drawn(want)
    const tokens = lots.reduce((sum, lot) => sum + lot.tokens, 0)
    const left = isPeek ? this.left + tokens : this.left
    const need = pace * leadUs
    const isLow = left <= need || (left <= need + 2 * Math.sqrt(need) && agoUs >= periodUs)
    const isDue = isLow && nowUs >= this.claimEndUs && nowUs >= this.deniedUs && pace * leaseUs >= 2
    const isClaimed = !isPeek && !isBlocked && isDue && (!isScarce || agoUs >= periodUs)
    if (isClaimed) {
      this.claimedUs = nowUs
      this.claimEndUs = nowUs + claimUs
      if (isScarce) this.deniedUs = nowUs + claimUs
    }
    if (isClaimed || sinceUs >= periodUs) {
      this.pace = pace
      this.demand = 0
      this.sinceUs = nowUs
    }
    const isDenied = tokens === 0 && isScarce && least >= this.deniedCost
    // A renewal on its way brings news sooner than its claim ends.
    const onItsWayUs = this.claimEndUs > nowUs ? Math.max(this.claimedUs + leadUs - nowUs, POOL.soonUs) : Math.max(0, this.deniedUs - nowUs)
    const deniedUs = isDenied ? onItsWayUs : 0
    const { rest } = this
    const claim = isClaimed ? { pace, total: this.total, agoUs } : undefined
    const blockedUs = Math.max(0, this.blockedUs - nowUs)
    const fullUs = Math.max(0, this.fullUs - nowUs)
    if (before !== undefined) Object.assign(this, before)
    return { nowUs, tokens, lots, left, claim, deniedUs, blockedUs, rest, fullUs, isScarce }
  }

  deposit(nowUs: number, deposit: Deposit): Deposited {
    let endUs = 0
    this.read(nowUs)
    const { isRenewal, tokens, wanted, least, deniedUs, blockedUs, rest, fullUs, total, periodUs } = deposit
    if (blockedUs > 0) {
      this.lots = []
      this.blockedUs = Math.max(this.blockedUs, nowUs + blockedUs)
    } else {
      endUs = this.rules.endOf(deposit, nowUs)
      this.add(nowUs, tokens, endUs)
    }
    if (isRenewal) this.claimEndUs = 0
    if (tokens < wanted) {
      const againUs = isRenewal ? Math.max(deniedUs, this.claimedUs + periodUs - nowUs) : deniedUs
      this.deniedUs = nowUs + Math.min(againUs, POOL.longestDenialUs)
      this.deniedCost = least
    } else {
      this.deniedUs = 0
      this.deniedCost = 0
    }
    this.rest = rest
    this.fullUs = nowUs + fullUs
    if (total !== undefined) this.total = total
    return { owed: isRenewal ? this.settle(nowUs) : 0, endUs }
  }

  reclaim(nowUs: number, endUs: number): number {
    this.read(nowUs)
    const lot = this.lots.find((each) => each.endUs === endUs)
    if (this.rules.voidsReclaimed) this.lots = this.lots.filter((each) => each !== lot)
    return lot?.tokens ?? 0
  }

  back(nowUs: number, { tokens, endUs }: Lot): void {
    this.read(nowUs)
    this.add(nowUs, tokens, endUs)
  }

  owe(nowUs: number, tokens: number): void {
    this.read(nowUs)
    this.owed += tokens
  }

  settle(nowUs: number): number {
    this.read(nowUs)
    const { owed } = this
    this.owed = 0
    return owed
  }

  lost(nowUs: number): void {
    this.read(nowUs)
    this.deniedUs = 0
    this.deniedCost = 0
  }

  block(nowUs: number, us: number): void {
    this.read(nowUs)
    if (us > 0) this.lots = []
    this.blockedUs = us === 0 ? 0 : Math.max(this.blockedUs, nowUs + us)
  }

  /** Tokens held at the time read last. */
  get left(): number {
    return this.lots.reduce((sum, { tokens }) => sum + tokens, 0)
  }

  private read(nowUs: number): void {
    if (this.seenUs > nowUs) {
      if (this.rules.voidsAfterStep) this.lots = []
      this.sinceUs = nowUs
      this.demand = 0
      this.claimedUs = nowUs
      this.claimEndUs = 0
      this.deniedUs = Math.min(this.deniedUs, nowUs)
    }
    this.seenUs = nowUs
    if (this.rules.voidsEnded) this.lots = this.lots.filter(({ endUs }) => endUs > nowUs)
  }

  /** The oldest first. */
  private drawn(want: number): Lot[] {
    const drawn: Lot[] = []
    let open = want
    for (const lot of this.lots) {
      const tokens = Math.min(open, lot.tokens)
      if (tokens > 0) drawn.push({ tokens, endUs: lot.endUs })
      lot.tokens -= tokens
      open -= tokens
    }
    this.lots = this.lots.filter(({ tokens }) => tokens > 0)
    return drawn
  }

  private add(nowUs: number, tokens: number, endUs: number): void {
    if (tokens <= 0 || endUs <= nowUs || endUs > nowUs + this.rules.longestUs) return
    const same = this.lots.find((lot) => lot.endUs === endUs)
    if (same !== undefined) same.tokens += tokens
    else this.lots = [...this.lots, { tokens, endUs }].toSorted((a, b) => a.endUs - b.endUs)
    const [first, second] = this.lots
    if (this.lots.length > POOL.mostLots && first !== undefined && second !== undefined) {
      first.tokens += second.tokens
      this.lots.splice(1, 1)
    }
  }

  private copy(): Partial<PoolTwin> {
    return { ...this, lots: this.lots.map((lot) => ({ ...lot })) } as Partial<PoolTwin>
  }
}
