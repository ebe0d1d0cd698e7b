import type { Deposit, Draw, Drawn, DrawTerms, Lot } from '../../../sluicegate/dist/shared/region-pool.js'

const POOL = {
  paceUs: 2_000_000,
  longestDenialUs: 2_000_000,
  leastStepUs: 1_000_000,
  soonUs: 50_000,
  mostLots: 10,
  stale: 3,
  returnedUs: 2_000_000,
  lateUs: 200_000,
  banSettlesUs: 2_000_000,
  warm: 1,
  slow: 16,
}

/** Rules of a pool, of which mutants break one each. */
export interface PoolRules {
  readonly name: string
  /** When a lot ends, by the clock of the region's store. */
  endOf(deposit: Deposit, nowUs: number): number
  /** Whether ended tokens, and those from a time that is still to come, are void. */
  readonly voidsEnded: boolean
  readonly voidsAfterStep: boolean
  /** Whether of ended tokens those alone go back to the home that were not drawn. */
  readonly reclaimsLeft: boolean
  /** Whether tokens that came back in time are kept from going back to the home as well. */
  readonly backsOnce: boolean
  /** Whether the time that a clock skipped is no time without demand. */
  readonly seesSteps: boolean
  /** Whether of tokens too few for all each draw gets what falls to the time since the last. */
  readonly meters: boolean
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
  reclaimsLeft: true,
  backsOnce: true,
  seesSteps: true,
  meters: true,
  longestUs: 4_000_000,
}

/** Of demand, claims and denials; and of what is held. */
const DEMAND = { demand: 0, sinceUs: 0, pace: 0, claimedUs: 0, claimEndUs: 0, deniedUs: 0, deniedCost: 0 }
const HELD = {
  seenUs: 0,
  blockedUs: 0,
  owed: 0,
  rest: 0,
  fullUs: 0,
  total: 0,
  bornUs: 0,
  banKnownUs: 0,
  meteredUs: 0,
  lots: [] as readonly { tokens: number; given: number; endUs: number; grantId: number }[],
}

/** What a region holds of one key: twin of `lua/scripts/region.lua`, without the time after which the key is forgotten. */
export class PoolTwin {
  private readonly rules: PoolRules
  private state = { ...DEMAND, ...HELD }

  constructor(rules = SOUND_POOL) {
    this.rules = rules
  }

  draw(nowUs: number, { want, least, demand }: Draw, terms: DrawTerms): Drawn {
    const { state } = this
    const isPeek = demand === undefined
    const before = isPeek ? structuredClone(state) : undefined
    this.read(nowUs)
    const { periodUs, leadUs, claimUs, leaseUs, foreseenUs, isEager } = terms
    if (state.sinceUs === 0) state.sinceUs = nowUs
    const skippedUs = foreseenUs > 0 ? nowUs - foreseenUs : 0
    if (this.rules.seesSteps && skippedUs > POOL.leastStepUs) {
      if (state.sinceUs <= foreseenUs) state.sinceUs += skippedUs
      if (state.claimedUs <= foreseenUs) state.claimedUs += skippedUs
    }
    state.demand += demand ?? 0
    const sinceUs = nowUs - state.sinceUs
    const pace = sinceUs > 0 ? state.pace + (1 - Math.exp(-sinceUs / POOL.paceUs)) * (state.demand / sinceUs - state.pace) : state.pace
    const agoUs = nowUs - state.claimedUs
    if (state.deniedUs <= nowUs && agoUs >= POOL.stale * periodUs) state.deniedUs = 0
    const isScarce = state.deniedUs > 0
    const isBlocked = state.blockedUs > nowUs
    const held = this.left
    const nextUs = state.claimedUs + (state.claimEndUs > nowUs ? Math.floor(leadUs / 2) : periodUs) - nowUs
    const isMetered = this.rules.meters && isScarce && nextUs > 0 && held < pace * nextUs
    const sinceMeteredUs = nowUs - state.meteredUs
    const metered = isMetered ? (held * sinceMeteredUs) / (sinceMeteredUs + nextUs) : held
    const lots = isBlocked || metered < least ? [] : this.drawn(Math.min(want, Math.floor(metered)))
    const tokens = lots.reduce((sum, lot) => sum + lot.tokens, 0)
    if (isMetered && tokens > 0) state.meteredUs = nowUs - Math.floor(sinceMeteredUs * (1 - tokens / metered))
    const left = isPeek ? this.left + tokens : this.left
    const need = pace * leadUs
    const isSlow = pace * leaseUs < POOL.slow && 2 * agoUs >= leaseUs
    const isLow = left <= need || (left <= need + 2 * Math.sqrt(need) && agoUs >= periodUs) || isSlow
    const isWarm = isEager || pace * leaseUs >= POOL.warm
    const isNeeded = isLow && nowUs >= state.deniedUs && isWarm && (!isScarce || agoUs >= periodUs)
    const isDue = isBlocked ? agoUs >= POOL.longestDenialUs : isNeeded
    const isClaimed = !isPeek && isDue && nowUs >= state.claimEndUs
    const { owed } = state
    if (isClaimed) {
      state.claimedUs = nowUs
      state.claimEndUs = nowUs + claimUs
      state.owed = 0
      if (isScarce) state.deniedUs = nowUs + claimUs
    }
    if (isClaimed || sinceUs >= periodUs) {
      state.pace = pace
      state.demand = 0
      state.sinceUs = nowUs
    }
    const isDenied = tokens === 0 && isScarce && least >= state.deniedCost
    // A renewal on its way brings news sooner than its claim ends.
    const onItsWayUs =
      state.claimEndUs > nowUs ? Math.max(state.claimedUs + leadUs - nowUs, POOL.soonUs) : Math.max(0, state.deniedUs - nowUs)
    const meteredUs = Math.max(1, Math.ceil((least * (sinceMeteredUs + nextUs)) / held) - sinceMeteredUs)
    const deniedUs = tokens === 0 && isMetered && held >= least ? meteredUs : isDenied ? onItsWayUs : 0
    const { rest } = state
    const claim = isClaimed ? { pace, total: state.total, agoUs, owed } : undefined
    const blockedUs = Math.max(0, state.blockedUs - nowUs)
    const fullUs = Math.max(0, state.fullUs - nowUs)
    if (before !== undefined) this.state = before
    return { nowUs, tokens, lots, left, claim, deniedUs, blockedUs, rest, fullUs, isScarce }
  }

  /** @returns when the tokens end. */
  deposit(nowUs: number, deposit: Deposit): number {
    const { state } = this
    let endUs = 0
    this.read(nowUs)
    const { isRenewal, claimedUs, tokens, wanted, least, deniedUs, blockedUs, rest, fullUs, total, periodUs, grantId } = deposit
    if ((isRenewal ? claimedUs : nowUs) >= state.banKnownUs) state.blockedUs = blockedUs > 0 ? nowUs + blockedUs : 0
    if (blockedUs > 0) state.lots = []
    else {
      endUs = this.rules.endOf(deposit, nowUs)
      this.add(nowUs, { tokens, endUs, grantId })
    }
    if (isRenewal) {
      state.claimEndUs = 0
      state.meteredUs = nowUs
    }
    if (tokens < wanted) {
      const againUs = isRenewal ? Math.max(deniedUs, state.claimedUs + periodUs - nowUs) : deniedUs
      state.deniedUs = nowUs + Math.min(againUs, POOL.longestDenialUs)
      state.deniedCost = least
    } else {
      state.deniedUs = 0
      state.deniedCost = 0
    }
    state.rest = rest
    state.fullUs = nowUs + fullUs
    if (total !== undefined) state.total = total
    return endUs
  }

  reclaim(nowUs: number, endUs: number): number {
    const lot = this.state.lots.find((each) => each.endUs === endUs)
    if (lot === undefined) return 0
    this.read(nowUs)
    if (!this.state.lots.includes(lot)) return 0
    this.state.lots = this.state.lots.filter((each) => each !== lot)
    return this.rules.reclaimsLeft ? lot.tokens : lot.given
  }

  /** @returns whether they came back in time. */
  back(nowUs: number, lot: Lot): boolean {
    if (lot.endUs <= nowUs - POOL.lateUs) return false
    this.read(nowUs)
    this.add(nowUs, lot)
    return this.rules.backsOnce
  }

  /** @returns since when the key is known here. */
  owe(nowUs: number, tokens: number): number {
    this.read(nowUs)
    this.state.owed = Math.max(0, this.state.owed + tokens)
    return this.state.bornUs
  }

  settle(nowUs: number): number {
    const { owed } = this.state
    if (owed === 0) return 0
    this.read(nowUs)
    this.state.owed = 0
    return owed
  }

  lost(nowUs: number, owed: number): void {
    this.read(nowUs)
    this.state.deniedUs = 0
    this.state.deniedCost = 0
    this.state.owed += owed
  }

  reset(nowUs: number): void {
    this.read(nowUs)
    this.state = { ...DEMAND, ...HELD, seenUs: nowUs, bornUs: this.state.bornUs, banKnownUs: nowUs + POOL.banSettlesUs }
  }

  block(nowUs: number, us: number): void {
    this.read(nowUs)
    if (us > 0) this.state.lots = []
    this.state.blockedUs = us === 0 ? 0 : Math.max(this.state.blockedUs, nowUs + us)
    this.state.banKnownUs = nowUs + POOL.banSettlesUs
  }

  /** Tokens held at the time read last. */
  get left(): number {
    return this.state.lots.reduce((sum, { tokens, endUs }) => sum + (this.isLive(endUs) ? tokens : 0), 0)
  }

  private read(nowUs: number): void {
    const { state } = this
    if (state.seenUs > nowUs) {
      if (this.rules.voidsAfterStep) state.lots = []
      state.sinceUs = nowUs
      state.demand = 0
      state.claimedUs = nowUs
      state.claimEndUs = 0
      state.deniedUs = Math.min(state.deniedUs, nowUs)
      state.banKnownUs = Math.min(state.banKnownUs, nowUs)
      state.meteredUs = Math.min(state.meteredUs, nowUs)
    }
    state.seenUs = nowUs
    if (state.bornUs === 0) state.bornUs = nowUs
    state.lots = state.lots.filter(({ endUs }) => this.isLive(endUs, POOL.returnedUs))
  }

  /** Ended tokens are kept for a moment, for the home. */
  private isLive(endUs: number, longerUs = 0): boolean {
    return !this.rules.voidsEnded || endUs > this.state.seenUs - longerUs
  }

  /** The oldest first. */
  private drawn(want: number): Lot[] {
    const drawn: Lot[] = []
    let open = want
    for (const lot of this.state.lots) {
      const tokens = this.isLive(lot.endUs) ? Math.min(open, lot.tokens) : 0
      if (tokens > 0) drawn.push({ tokens, endUs: lot.endUs, grantId: lot.grantId })
      lot.tokens -= tokens
      open -= tokens
    }
    this.state.lots = this.state.lots.filter(({ tokens }) => tokens > 0)
    return drawn
  }

  private add(nowUs: number, { tokens, endUs, grantId }: Lot): void {
    const { state } = this
    if (tokens <= 0 || endUs <= nowUs - POOL.returnedUs || endUs > nowUs + this.rules.longestUs) return
    const same = state.lots.find((lot) => lot.endUs === endUs)
    if (same !== undefined) same.tokens += tokens
    else state.lots = [...state.lots, { tokens, given: tokens, endUs, grantId }].toSorted((a, b) => a.endUs - b.endUs)
    const [first, second] = state.lots
    if (state.lots.length > POOL.mostLots && first !== undefined && second !== undefined) {
      first.tokens += second.tokens
      state.lots = state.lots.toSpliced(1, 1)
    }
  }
}
