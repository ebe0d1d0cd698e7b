import type { Draw, Drawn, HomeAnswer, PoolBatch, Refill } from '../shared/region-pool.js'

// As in `lua/steps/region-key.lua`, which says what each of these is.

const [PACE_US, PERIOD_US] = [2_000_000, 1_000_000]
const [LONGEST_DENIAL_US, STALE_US] = [2_000_000, 3_000_000]
const MOST_BATCHES = 10
const [RETURNED_US, LATE_US] = [2_000_000, 200_000]
const BAN_SETTLES_US = 2_000_000
const [LEAST_STEP_US, LONGEST_US] = [1_000_000, 4_000_000]
const [IDLE_MS, DEBT_MS] = [60_000, 86_400_000]

/** The numbers of a key, which `lua/steps/region-key.lua` explains. */
const NEW_KEY = {
  seen: 0,
  demand: 0,
  since: 0,
  pace: 0,
  claimed: 0,
  claimEnd: 0,
  denied: 0,
  deniedCost: 0,
  blocked: 0,
  debt: 0,
  rest: 0,
  full: 0,
  total: 0,
  born: 0,
  banKnown: 0,
  metered: 0,
}

/** What a region holds of one key, in a store that only keeps values: twin of `lua/steps/region-key.lua` and `lua/scripts/region/`. */
export class RegionKey {
  protected key: typeof NEW_KEY
  protected batches: { tokens: number; readonly finish: number; readonly id: number }[]

  /** @param saved what {@link RegionKey.saved} was. */
  constructor(saved?: string) {
    const { key, batches } = saved === undefined ? { key: NEW_KEY, batches: [] } : JSON.parse(saved)
    this.key = { ...NEW_KEY, ...key }
    this.batches = batches
  }

  /** To be called before each verb. */
  load(now: number): void {
    const { key } = this
    if (key.seen > now) this.steppedBack(now)
    key.seen = now
    if (key.born === 0) key.born = now
    this.batches = this.batches.filter(({ tokens, finish }) => tokens > 0 && finish - now > -RETURNED_US)
  }

  get saved(): string {
    return JSON.stringify({ key: this.key, batches: this.batches })
  }

  /** For a look, which changes nothing. */
  copy(): RegionKey {
    return new RegionKey(this.saved)
  }

  /** How long a store keeps it. */
  get keptMs(): number {
    const { seen, blocked, denied, debt } = this.key
    const last = Math.max(seen, blocked, denied, this.batches.at(-1)?.finish ?? 0)
    return Math.ceil((last - seen) / 1000) + Math.max(IDLE_MS, debt > 0 ? DEBT_MS : 0)
  }

  draw({ want, least, demand, leadUs, foreseenUs }: Draw): Drawn {
    const { key } = this
    const now = key.seen
    const isLook = demand === undefined
    if (key.since === 0) key.since = now
    const skippedUs = foreseenUs > 0 ? now - foreseenUs : 0
    if (skippedUs > LEAST_STEP_US) {
      if (key.since <= foreseenUs) key.since += skippedUs
      if (key.claimed <= foreseenUs) key.claimed += skippedUs
    }
    key.demand += demand ?? 0
    const sinceUs = now - key.since
    const pace = sinceUs > 0 ? key.pace + (1 - Math.exp(-sinceUs / PACE_US)) * (key.demand / sinceUs - key.pace) : key.pace
    if (key.denied <= now && now - key.claimed >= STALE_US) key.denied = 0
    const [isScarce, isRenewing, left] = [key.denied > 0, key.claimEnd > now, this.left]
    const nextUs = key.claimed + (isRenewing ? Math.floor(leadUs / 2) : PERIOD_US) - now
    const isMetered = isScarce && nextUs > 0 && this.isShort(left, pace * nextUs)
    const sinceMeteredUs = now - key.metered
    const open = isMetered ? (left * sinceMeteredUs) / (sinceMeteredUs + nextUs) : left
    const tokens = key.blocked <= now && open >= least ? Math.min(want, Math.floor(open)) : 0
    if (isMetered && tokens > 0) key.metered = now - Math.floor(sinceMeteredUs * (1 - tokens / open))
    const batches = this.taken(tokens)
    const meteredUs =
      tokens === 0 && isMetered && left >= least ? Math.max(1, Math.ceil((least * (sinceMeteredUs + nextUs)) / left) - sinceMeteredUs) : 0
    if (sinceUs >= PERIOD_US) {
      key.pace = pace
      key.demand = 0
      key.since = now
    }
    return {
      nowUs: now,
      bornUs: key.born,
      tokens,
      batches,
      left: isLook ? left : left - tokens,
      meteredUs,
      blockedUs: Math.max(0, key.blocked - now),
      deniedUs: Math.max(0, key.denied - now),
      deniedCost: key.deniedCost,
      isScarce,
      claimedUs: key.claimed,
      isRenewing,
      rest: key.rest,
      fullUs: Math.max(0, key.full - now),
      pace,
      total: key.total,
      debt: key.debt,
    }
  }

  claim({ claimedUs, claimUs }: { readonly claimedUs: number; readonly claimUs: number }): number {
    const { key } = this
    const now = key.seen
    if (key.claimEnd > now || key.claimed !== claimedUs) return 0
    key.claimed = now
    key.claimEnd = now + claimUs
    if (key.denied > 0) key.denied = now + claimUs
    return now
  }

  refill(answer: Refill | HomeAnswer): number {
    const { key } = this
    const now = key.seen
    const refill = 'tokens' in answer ? answer : undefined
    let finish = 0
    if (answer.askedUs >= key.banKnown) key.blocked = answer.blockedUs > 0 ? now + answer.blockedUs : 0
    if (answer.blockedUs > 0) this.batches = []
    else if (refill !== undefined) {
      finish = this.finishOf(refill)
      this.add(refill.tokens, finish, refill.grantId)
    }
    if (refill !== undefined) {
      key.claimEnd = 0
      key.metered = now
    }
    key.denied = 0
    key.deniedCost = 0
    // What the home had before a ban, or its end, is not what it denies since.
    if (answer.isScarce && answer.askedUs >= key.banKnown - BAN_SETTLES_US) {
      const againUs = refill === undefined ? answer.deniedUs : Math.max(answer.deniedUs, key.claimed + PERIOD_US - now)
      key.denied = now + Math.min(againUs, LONGEST_DENIAL_US)
      key.deniedCost = answer.least
    }
    key.rest = answer.rest
    key.full = now + answer.fullUs
    key.total = refill?.total ?? key.total
    return finish
  }

  giveBack({ tokens, endUs, grantId }: PoolBatch): boolean {
    if (endUs <= this.key.seen - LATE_US) return false
    this.add(tokens, endUs, grantId)
    return true
  }

  reclaim(endUs: number): number {
    const batch = this.batches.find(({ finish }) => finish === endUs)
    if (batch === undefined) return 0
    this.batches = this.batches.filter((each) => each !== batch)
    return batch.tokens
  }

  addDebt(tokens: number): number {
    const { key } = this
    key.debt = Math.max(0, key.debt + tokens)
    key.denied = 0
    key.deniedCost = 0
    return key.born
  }

  takeDebt(): number {
    const { debt } = this.key
    this.key.debt = 0
    return debt
  }

  block(us: number): number {
    const { seen, born, debt, blocked } = this.key
    this.batches = []
    if (us > 0) this.key.blocked = Math.max(blocked, seen + us)
    else this.key = { ...NEW_KEY, seen, born, debt }
    this.key.banKnown = seen + BAN_SETTLES_US
    return seen
  }

  /** Tokens that have not ended. */
  get left(): number {
    return this.batches.reduce((sum, { tokens, finish }) => sum + (finish > this.key.seen ? tokens : 0), 0)
  }

  protected steppedBack(now: number): void {
    const { key } = this
    this.batches = []
    Object.assign(key, { since: now, demand: 0, claimed: now, claimEnd: 0 })
    for (const field of ['denied', 'banKnown', 'metered'] as const) key[field] = Math.min(key[field], now)
  }

  /** Whether tokens are too few for all. */
  protected isShort(left: number, wanted: number): boolean {
    return left < wanted
  }

  /** The earlier of both, as the clock may have been set meanwhile. */
  protected finishOf({ askedUs, endsUs, agoUs }: Refill): number {
    const finish = this.key.seen + endsUs - agoUs
    return askedUs <= this.key.seen ? Math.min(finish, askedUs + endsUs) : finish
  }

  protected add(tokens: number, finish: number, id: number, longestUs = LONGEST_US): void {
    const { seen } = this.key
    if (tokens <= 0 || finish <= seen - RETURNED_US || finish > seen + longestUs) return
    const same = this.batches.find((batch) => batch.finish === finish)
    if (same !== undefined) same.tokens += tokens
    else this.batches = [...this.batches, { tokens, finish, id }].sort((a, b) => a.finish - b.finish)
    const [first, second] = this.batches
    if (this.batches.length > MOST_BATCHES && first !== undefined && second !== undefined) {
      first.tokens += second.tokens
      this.batches.splice(1, 1)
    }
  }

  private taken(want: number): PoolBatch[] {
    const taken: PoolBatch[] = []
    let open = want
    for (const batch of this.batches) {
      const tokens = batch.finish > this.key.seen ? Math.min(open, batch.tokens) : 0
      if (tokens > 0) taken.push({ tokens, endUs: batch.finish, grantId: batch.id })
      batch.tokens -= tokens
      open -= tokens
    }
    return taken
  }
}
