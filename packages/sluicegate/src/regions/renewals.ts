import type { Grant } from '../lease/grant.js'
import { mostLeased, surelyUs } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import { slidingWindow } from '../policy/single-policy.js'
import { type Backend, newOperationId } from '../shared/backend.js'
import type { Drawn, DrawTerms, RegionPool, RenewalClaim } from '../shared/region-pool.js'
import { type Clock, type Ticker, tickerOf } from '../time/clock.js'
import { Alarm, type Alert, alertOf } from '../waiting/alarm.js'
import type { ShareBackend } from './region-share.js'
import { isRate, PLENTY, type RegionTerms } from './region-terms.js'

/** Renewals of so long are one message, and meanwhile keys that would fall due within {@link EAGER_US} join it. */
const [TOGETHER_US, EAGER_US] = [20_000, 300_000]
/** How long a renewal takes while none was made, and the least that is allowed for. */
const [FIRST_LEAD_US, LEAST_LEAD_US] = [300_000, 50_000]
/** Allowed for beyond the answers of the home: the time until a process draws again. */
const SLACK = 1.5
const SLACK_US = 100_000
const WEIGHT = 0.2
/** A claim holds for this many renewals; the process that has it may be gone. */
const CLAIM_LEADS = 3
const LEAST_CLAIM_US = 1_000_000
/**
 * A region wants its part of so much of what a scarce budget had left, and of all that flows in. That keeps some tokens at the home: else regions got
 * what flowed in since another one came, whatever their demand, and one whose demand begins found nothing.
 */
const OF_REST = 0.5
/** The window in which the home counts the demand of all regions, under a limit that no demand reaches. */
const [DEMAND_WINDOW_MS, DEMAND_LIMIT] = [4000, 1_000_000_000]
/** Tokens of a window go back to the home this long after their end: processes have brought theirs back. */
const RECLAIMED_US = 300_000
/** A clock that differs by more was set; by how much it was off before is known for so long. */
const [LEAST_STEP_US, STEP_KNOWN_US] = [1_000_000, 3_000_000]
/** The most demand that one message reports. */
const MOST_DEMAND = 1e8

/** What renewals of one policy at the home use. */
export interface RenewalPart {
  readonly policy: Policy
  readonly pool: RegionPool
  /** This policy alone at the home. */
  readonly home: Backend
  /** {@link demandPolicy} at the home. */
  readonly demand: Backend
  /** What decides without the home; undefined without a share. */
  readonly alone: Pick<ShareBackend, 'spentOf'> | undefined
}

/** A key to be renewed, and when the answer with the claim arrived. */
interface DueKey {
  readonly part: number
  readonly key: string
  readonly drawn: Drawn
  readonly claim: RenewalClaim
  readonly arrivedUs: number
}

/** Tokens of a window that a renewal brought. */
interface Given {
  readonly part: number
  readonly key: string
  readonly endUs: number
  readonly grantId: number
}

/** How a region renews. */
export interface RenewalRules {
  /** Whether keys of any pace are renewed: takes never go to the home. */
  readonly isEager: boolean
  /** Whether any process may return tokens that another one leased of the home. */
  readonly sharesGrants: boolean
}

/** What a home's answer says when it brings no tokens. */
type Denial = Pick<Grant, 'untilFreeUs' | 'blockedUs' | 'remaining' | 'untilNewUs'>

export function noRenewals(): RenewalCounts {
  return { renewals: 0, tokens: 0, failed: 0, charged: 0 }
}

/** Counts since the limiter was created, under all its policies. */
export interface RenewalCounts {
  /** Renewals that the home answered. */
  renewals: number
  /** Tokens that they brought to the region. */
  tokens: number
  /** Renewals that the home did not answer. */
  failed: number
  /** Tokens admitted without the home that were charged there since. */
  charged: number
}

/**
 * Brings tokens from the home to the region's store, in the background: no take waits for it. Keys that fall due at about the same
 * time go together.
 *
 * A region wants what it will probably use until the next renewal has come. Where the home has too little for all, it wants its part of it, by
 * the demand of all regions, which the home counts.
 */
export class RegionRenewals {
  private readonly counts: RenewalCounts
  private readonly parts: readonly RenewalPart[]
  private readonly terms: RegionTerms
  private readonly rules: RenewalRules
  private readonly ticker: Ticker
  private readonly alarm: Alarm
  private readonly alert: Alert
  /** What goes back to the home when its time has come. */
  private readonly reclaims = new Map<Alert, Given>()
  private due: DueKey[] = []
  private leadUs = FIRST_LEAD_US
  /** How far the clock of the region's store is ahead of that of this process, and since when that is known. */
  private aheadUs = Number.NaN
  private aheadSinceUs = 0

  /** @param counts are counted on. */
  constructor(parts: readonly RenewalPart[], terms: RegionTerms, rules: RenewalRules, clock: Clock, counts: RenewalCounts) {
    this.counts = counts
    this.rules = rules
    this.parts = parts
    this.terms = terms
    this.ticker = tickerOf(clock)
    this.alarm = new Alarm(clock, () => void this.close(Promise.resolve()))
    this.alert = alertOf(() => this.renewAll())
  }

  /** Whether nothing waits for its time. */
  get isIdle(): boolean {
    return this.due.length === 0 && this.reclaims.size === 0
  }

  /** For a draw from now on. */
  get drawTerms(): DrawTerms {
    const leadUs = this.leadUs + (this.due.length > 0 ? EAGER_US : 0)
    const { periodUs, leaseUs } = this.terms
    const foreseenUs = Math.round(this.ticker.read() + this.aheadUs) || 0
    const { isEager } = this.rules
    return { periodUs, leadUs, claimUs: Math.max(LEAST_CLAIM_US, CLAIM_LEADS * leadUs), leaseUs, foreseenUs, isEager }
  }

  /** The time of the region's store. After a step of its clock keys that were used before it are to be found out by the older difference. */
  heard(nowUs: number): void {
    const atUs = this.ticker.read()
    const aheadUs = nowUs - atUs
    if (Math.abs(aheadUs - this.aheadUs) > LEAST_STEP_US && atUs - this.aheadSinceUs < STEP_KNOWN_US) return
    this.aheadUs = aheadUs
    this.aheadSinceUs = atUs
  }

  /** This process is to renew a key. */
  claimed(part: number, key: string, drawn: Drawn, claim: RenewalClaim): void {
    this.due.push({ part, key, drawn, claim, arrivedUs: this.ticker.read() })
    if (this.due.length === 1) this.alarm.set(this.alert, this.ticker.read() + TOGETHER_US, 0)
  }

  /** The home denied a take of `least` tokens: the region need not call it again at once. */
  learned(part: number, key: string, least: number, denial: Denial): void {
    const { pool } = this.parts[part] as RenewalPart
    pool.deposit(key, { ...NOTHING, ...termsOf(denial), least, wanted: least, periodUs: this.terms.periodUs }).catch(noMatter)
  }

  /**
   * The process ends: what is left of the tokens of windows that it brought goes back to the home now, as nobody is there for it later.
   *
   * @param returned when what the process held of them is back in the region.
   */
  async close(returned: Promise<unknown>): Promise<void> {
    this.alarm.clear(this.alert)
    for (const { part, key, claim } of this.due) this.poolOf(part).lost(key, claim.owed).catch(noMatter)
    this.due = []
    const left = [...this.reclaims]
    this.reclaims.clear()
    for (const [alert] of left) this.alarm.clear(alert)
    await returned
    for (const [, given] of left) this.reclaim(given).catch(noMatter)
  }

  private poolOf(part: number): RegionPool {
    return (this.parts[part] as RenewalPart).pool
  }

  private renewAll(): void {
    const { due } = this
    this.due = []
    for (const each of due) void this.renew(each)
  }

  private async renew(due: DueKey): Promise<void> {
    const { part, key, drawn, claim, arrivedUs } = due
    const { pool, home, policy } = this.parts[part] as RenewalPart
    const [need, wanted] = wantedOf(due, policy, this.terms, this.leadUs)
    // The take that made the claim may have been admitted without the home since.
    const more = this.rules.isEager ? await pool.settle(key).catch(() => 0) : 0
    const owed = await this.stillOwed(part, key, claim.owed + more)
    const sentUs = this.ticker.read()
    const demand = drawn.isScarce ? this.demandOf(due) : undefined
    try {
      const grant = await home.lease({ key, part: 0, want: wanted + owed, least: 1 })
      this.took(this.ticker.read() - sentUs)
      // What was admitted already is paid with the first of them.
      const paid = Math.min(owed, grant.availableNow)
      const tokens = grant.availableNow - paid
      this.counts.renewals++
      this.counts.tokens += tokens
      this.counts.charged += paid
      const total = await demand
      const agoUs = Math.ceil((this.ticker.read() - arrivedUs) * (1 + 1 / 1000))
      const lastUs = tokens > 0 ? Math.floor(surelyUs(grant.endUs(0))) : 0
      const endUs = await pool.deposit(key, {
        ...termsOf(grant),
        isRenewal: true,
        claimedUs: drawn.nowUs,
        lastUs,
        agoUs,
        tokens,
        // With its part alone, too, the region leaves the home alone until the next renewal: what is there belongs to others.
        wanted: need,
        least: 1,
        total,
        periodUs: this.terms.periodUs,
        grantId: this.rules.sharesGrants ? (grant.id ?? 0) : 0,
      })
      if (tokens > 0 && !grant.flowsBack && grant.id !== undefined && !endsWithWindow(grant, this.terms))
        this.reclaimLater({ part, key, endUs, grantId: grant.id }, lastUs - agoUs)
      if (owed > paid) await this.charge(part, key, owed - paid)
    } catch {
      this.counts.failed++
      await pool.lost(key, claim.owed + more).catch(noMatter)
    }
  }

  /** Of tokens that were admitted without the home those that have not refilled since. */
  private async stillOwed(part: number, key: string, owed: number): Promise<number> {
    const { alone } = this.parts[part] as RenewalPart
    if (owed === 0 || alone === undefined) return owed
    const [spent = owed] = await alone.spentOf(key).catch(() => [])
    return Math.max(0, Math.min(owed, spent))
  }

  /** Reports the demand of this region to the home, which answers with the demand of all regions. */
  private async demandOf({ part, key, claim: { pace, agoUs } }: DueKey): Promise<number | undefined> {
    const { demand } = this.parts[part] as RenewalPart
    const cost = Math.min(MOST_DEMAND, Math.round(pace * Math.min(agoUs, DEMAND_WINDOW_MS * 1000)))
    if (cost < 1) return undefined
    try {
      const { decision } = await demand.execute({ verb: 'take', key, cost, id: newOperationId() })
      return decision && (DEMAND_LIMIT - decision.remaining) / (DEMAND_WINDOW_MS * 1000)
    } catch {
      return undefined
    }
  }

  /** When tokens have ended, and the window goes on, those left go back to the home: others may use them. */
  private reclaimLater(given: Given, lastUs: number): void {
    const alert = alertOf(() => {
      this.reclaims.delete(alert)
      this.reclaim(given).catch(noMatter)
    })
    this.reclaims.set(alert, given)
    this.alarm.set(alert, this.ticker.read() + Math.max(0, Math.ceil(lastUs)) + RECLAIMED_US, 0)
  }

  private async reclaim({ part, key, endUs, grantId }: Given): Promise<void> {
    const { pool, home } = this.parts[part] as RenewalPart
    const tokens = await pool.reclaim(key, endUs)
    if (tokens > 0) await home.execute({ verb: 'giveBack', key, charge: { grantId, part: 0, cost: tokens }, tokens })
  }

  /** The home answers again: what the region admitted of the key without it is charged. */
  async settle(part: number, key: string): Promise<void> {
    const owed = await this.poolOf(part).settle(key)
    const tokens = await this.stillOwed(part, key, owed)
    if (tokens > 0) await this.charge(part, key, tokens)
  }

  /** A charge that is lost may have been made, and is not repeated. */
  private async charge(part: number, key: string, tokens: number): Promise<void> {
    const { home } = this.parts[part] as RenewalPart
    try {
      await home.execute({ verb: 'penalize', key, tokens })
      this.counts.charged += tokens
    } catch {
      this.counts.failed++
    }
  }

  private took(us: number): void {
    const leadUs = Math.max(LEAST_LEAD_US, us) * SLACK + SLACK_US + TOGETHER_US
    this.leadUs = Math.round(this.counts.renewals === 0 ? leadUs : this.leadUs + WEIGHT * (leadUs - this.leadUs))
  }
}

/** What is left of the window is too short to use them elsewhere, and a region without tokens would take and renew at the home at once. */
function endsWithWindow(grant: Grant, { leaseUs }: RegionTerms): boolean {
  return grant.endUs(0) < leaseUs - RECLAIMED_US
}

/** Counts at the home what all regions request of a policy. */
export function demandPolicy({ name }: Policy): Policy {
  return slidingWindow({ limit: DEMAND_LIMIT, window: DEMAND_WINDOW_MS, name: `${name.slice(0, 100)}@demand` })
}

const NOTHING = { isRenewal: false, claimedUs: 0, lastUs: 0, agoUs: 0, tokens: 0, total: undefined, grantId: 0 }

function termsOf({ untilFreeUs, blockedUs, remaining, untilNewUs }: Denial): {
  readonly deniedUs: number
  readonly blockedUs: number
  readonly rest: number
  readonly fullUs: number
} {
  return { deniedUs: untilFreeUs, blockedUs, rest: remaining, fullUs: untilNewUs }
}

/**
 * Tokens that a region needs until the renewal after this one has come, with two standard deviations of a Poisson demand; and those that it
 * wants: of a scarce budget its part of what the home had left and what flows in meanwhile.
 */
function wantedOf(
  { drawn, claim }: DueKey,
  policy: Policy,
  { periodUs, leaseUs }: RegionTerms,
  leadUs: number,
): readonly [need: number, wanted: number] {
  const { left, rest, isScarce } = drawn
  const { pace, total } = claim
  const { limit, windowMs } = policy
  const during = pace * leadUs
  const foreseen = during + 2 * Math.sqrt(during) + pace * periodUs - left
  if (!isScarce && isRate(policy)) {
    // What is left unspent flows back. For longer with plenty, up to twice as long; half of the lease is left for a renewal that comes late.
    const plenty = Math.max(0, Math.min(1, rest / mostLeased(policy, leaseUs)) - PLENTY) / (1 - PLENTY)
    const wanted = Math.max(1, Math.ceil(foreseen + pace * plenty * Math.min(periodUs, leaseUs / 2 - periodUs)))
    return [wanted, wanted]
  }
  const need = Math.max(1, Math.ceil(foreseen))
  if (!isScarce || total <= pace) return [need, need]
  const rate = limit / (windowMs * 1000)
  // Of a budget into which hardly anything flows nothing is kept: single takes at the home spend the rest.
  if (rate * periodUs < 1) {
    const part = Math.max(1, Math.ceil(Math.min(foreseen, rest * (pace / total))))
    return [part, part]
  }
  return [need, Math.max(1, Math.ceil(Math.min(foreseen, (rest * OF_REST + rate * periodUs) * (pace / total))))]
}

/** The region's store forgets a claim by itself. */
function noMatter(): void {}
