import type { Grant } from '../lease/grant.js'
import { surelyUs } from '../lease/leasing.js'
import type { Policy } from '../policy/policy.js'
import { slidingWindow } from '../policy/single-policy.js'
import { newOperationId } from '../shared/backend.js'
import type { Draw, Drawn, HomeAnswer, RegionPool } from '../shared/region-pool.js'
import { type Clock, type Ticker, tickerOf } from '../time/clock.js'
import { Alarm, type Alert, alertOf } from '../waiting/alarm.js'
import { deniedUsOf, isDue, isSlowlyUsed, wantedOf } from './need.js'
import type { RegionCounts, RegionPart, RegionShare } from './region-share.js'
import { flowingBack, type RegionTerms } from './region-terms.js'

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
/** The window in which the home counts the demand of all regions, under a limit that no demand reaches. */
const [DEMAND_WINDOW_MS, DEMAND_LIMIT] = [4000, 1_000_000_000]
/** Tokens go back to the home this long after their end: processes have brought theirs back. */
const RECLAIMED_US = 300_000
/** A clock that differs by more was set; by how much it was off before is known for so long. */
const [LEAST_STEP_US, STEP_KNOWN_US] = [1_000_000, 3_000_000]
/** The most demand that one message reports. */
const MOST_DEMAND = 1e8

/** A key to be renewed. */
interface DueKey {
  readonly part: number
  readonly key: string
  readonly drawn: Drawn
  /** When it was claimed, by the clock of the region's store, and before that by this process's. */
  readonly claimedUs: number
  readonly sentUs: number
  /** Whether nobody called for it since the renewal before. */
  readonly isKept: boolean
}

/** Tokens that a renewal brought, and that go back to the home unless they are spent. */
interface Brought {
  readonly part: number
  readonly key: string
  readonly endUs: number
  readonly grantId: number
}

/** What a home's answer says when it brings no tokens. */
type Denial = Pick<Grant, 'untilFreeUs' | 'blockedUs' | 'remaining' | 'untilNewUs'>

/**
 * Brings tokens from the home to the region's store, in the background: no take waits for it. Keys that fall due at about the same
 * time go together.
 *
 * A region wants what it will probably use until the next renewal has come. Where the home has too little for all, it wants its part of it, by
 * the demand of all regions, which the home counts.
 */
export class RegionRenewals {
  private readonly counts: RegionCounts
  private readonly parts: readonly RegionPart[]
  private readonly terms: RegionTerms
  /** Where the region admits tokens without the home. */
  private readonly share: Pick<RegionShare, 'takeDebt' | 'payDebt'>
  /** Whether keys of any pace are renewed: takes never go to the home. */
  private readonly isEager: boolean
  private readonly ticker: Ticker
  private readonly alarm: Alarm
  private readonly alert: Alert
  /** What goes back to the home when its time has come. */
  private readonly reclaims = new Map<Alert, Brought>()
  private readonly keeps = new Set<Alert>()
  private due: DueKey[] = []
  /** Keys that this process is about to claim. */
  private readonly claiming = new Set<string>()
  private leadUs = FIRST_LEAD_US
  private isClosed = false
  /** How far the clock of the region's store is ahead of that of this process, and since when that is known. */
  private aheadUs = Number.NaN
  private aheadSinceUs = 0

  /** @param counts are counted on. */
  constructor(
    parts: readonly RegionPart[],
    terms: RegionTerms,
    { share, isEager }: { readonly share: Pick<RegionShare, 'takeDebt' | 'payDebt'>; readonly isEager: boolean },
    clock: Clock,
    counts: RegionCounts,
  ) {
    this.counts = counts
    this.share = share
    this.isEager = isEager
    this.parts = parts
    this.terms = terms
    this.ticker = tickerOf(clock)
    this.alarm = new Alarm(clock, () => void this.giveUp(Promise.resolve()))
    this.alert = alertOf(() => this.renewAll())
  }

  /** Whether nothing waits for its time. */
  get isIdle(): boolean {
    return this.due.length + this.reclaims.size + this.keeps.size + this.claiming.size === 0
  }

  /** For a draw from now on. */
  get foreseen(): Pick<Draw, 'leadUs' | 'foreseenUs'> {
    return { leadUs: this.leadUs, foreseenUs: Math.round(this.ticker.read() + this.aheadUs) || 0 }
  }

  /** How long the pool denies a request. */
  deniedUsOf(drawn: Drawn, least: number, isDue: boolean): number {
    return deniedUsOf(drawn, least, this.leadUs, isDue)
  }

  /**
   * A draw may find that the key is due: then this process renews it, unless another one was first.
   *
   * @param isDemand false for a look, which is no reason to renew.
   * @returns whether it is due.
   */
  drew(part: number, key: string, drawn: Drawn, isDemand: boolean): boolean {
    this.sawTime(drawn.nowUs)
    const leadUs = this.leadUs + (this.due.length > 0 ? EAGER_US : 0)
    if (!isDue(drawn, this.terms, leadUs, this.isEager)) return false
    if (isDemand) void this.claim(part, key, drawn, leadUs, false)
    return true
  }

  private async claim(part: number, key: string, drawn: Drawn, leadUs: number, isKept: boolean): Promise<void> {
    const name = `${part} ${key}`
    if (this.claiming.has(name)) return
    this.claiming.add(name)
    const sentUs = this.ticker.read()
    try {
      const claimUs = Math.max(LEAST_CLAIM_US, CLAIM_LEADS * leadUs)
      const claimedUs = await this.poolOf(part).claim(key, { claimedUs: drawn.claimedUs, claimUs })
      if (claimedUs === 0) return
      if (this.isClosed) {
        await this.poolOf(part).addDebt(key, 0)
        return
      }
      this.due.push({ part, key, drawn, claimedUs, sentUs, isKept })
      if (this.due.length === 1) this.alarm.set(this.alert, this.ticker.read() + TOGETHER_US, 0)
    } catch {
      // The next draw finds the key due.
    } finally {
      this.claiming.delete(name)
    }
  }

  /** After a step of the clock of the region's store keys that were used before it are to be found out by the older difference. */
  private sawTime(nowUs: number): void {
    const atUs = this.ticker.read()
    const aheadUs = nowUs - atUs
    if (Math.abs(aheadUs - this.aheadUs) > LEAST_STEP_US && atUs - this.aheadSinceUs < STEP_KNOWN_US) return
    this.aheadUs = aheadUs
    this.aheadSinceUs = atUs
  }

  /** The home denied a take of `least` tokens, which went there at `askedUs`: the region need not call it again at once. */
  denied(part: number, key: string, least: number, askedUs: number, denial: Denial): void {
    this.poolOf(part)
      .refill(key, { ...answerOf(denial), askedUs, least, isScarce: true })
      .catch(noMatter)
  }

  /**
   * The process ends: what is left of the tokens that it brought goes back to the home now, as nobody is there for it later.
   *
   * @param returned when what the process held of them is back in the region.
   */
  close(returned: Promise<unknown>): Promise<void> {
    this.isClosed = true
    return this.giveUp(returned)
  }

  private async giveUp(returned: Promise<unknown>): Promise<void> {
    this.alarm.clear(this.alert)
    for (const { part, key } of this.due) this.poolOf(part).addDebt(key, 0).catch(noMatter)
    this.due = []
    for (const alert of this.keeps) this.alarm.clear(alert)
    this.keeps.clear()
    const left = [...this.reclaims]
    this.reclaims.clear()
    for (const [alert] of left) this.alarm.clear(alert)
    await returned
    for (const [, brought] of left) this.reclaim(brought).catch(noMatter)
  }

  private poolOf(part: number): RegionPool {
    return (this.parts[part] as RegionPart).pool
  }

  private renewAll(): void {
    const { due } = this
    this.due = []
    for (const each of due) void this.renew(each)
  }

  private async renew(due: DueKey): Promise<void> {
    const { part, key, drawn, claimedUs, sentUs } = due
    const { pool, home, policy } = this.parts[part] as RegionPart
    const [need, want] = wantedOf(drawn, policy, this.terms, this.leadUs)
    // The take that set off the renewal may have been admitted without the home since.
    let debt = drawn.debt > 0 || this.isEager ? await this.share.takeDebt(part, key).catch(() => 0) : 0
    const atUs = this.ticker.read()
    const demand = drawn.isScarce ? this.demandOf(due) : undefined
    try {
      const grant = await home.lease({ key, part: 0, want: want + debt, least: 1 })
      this.took(this.ticker.read() - atUs)
      // What was admitted already is paid with the first of them.
      const paid = Math.min(debt, grant.tokens)
      debt -= paid
      const tokens = grant.tokens - paid
      this.counts.renewals++
      this.counts.tokens += tokens
      this.counts.charged += paid
      const total = await demand
      const agoUs = Math.ceil((this.ticker.read() - sentUs) * (1 + 1 / 1000))
      const endsUs = tokens > 0 ? Math.floor(surelyUs(grant.endUs(0))) : 0
      const { id: grantId = 0 } = grant
      // With its part alone, too, the region leaves the home alone until the next renewal: what is there belongs to others.
      const answer = { ...answerOf(grant), askedUs: claimedUs, least: 1, isScarce: tokens < need }
      const endUs = await pool.refill(key, { ...answer, tokens, endsUs, agoUs, grantId, total })
      if (tokens > flowingBack(policy, this.terms) && grant.id !== undefined && !endsWithWindow(grant, this.terms))
        this.reclaimLater({ part, key, endUs, grantId: grant.id }, endsUs - agoUs)
      const isKept = tokens > 0 && !due.isKept && !this.isEager && isSlowlyUsed(drawn, this.terms)
      if (isKept) this.keepLater(part, key, endsUs - agoUs)
      await this.share.payDebt(part, key, debt)
    } catch {
      this.counts.failed++
      await pool.addDebt(key, debt).catch(noMatter)
    }
  }

  /** Reports the demand of this region to the home, which answers with the demand of all regions. */
  private async demandOf({ part, key, drawn: { pace, nowUs, claimedUs } }: DueKey): Promise<number | undefined> {
    const { demand } = this.parts[part] as RegionPart
    const cost = Math.min(MOST_DEMAND, Math.round(pace * Math.min(nowUs - claimedUs, DEMAND_WINDOW_MS * 1000)))
    if (cost < 1) return undefined
    try {
      const { decision } = await demand.execute({ verb: 'take', key, cost, id: newOperationId() })
      return decision && (DEMAND_LIMIT - decision.remaining) / (DEMAND_WINDOW_MS * 1000)
    } catch {
      return undefined
    }
  }

  /** When tokens have ended, those left go back to the home: others may use them. */
  private reclaimLater(brought: Brought, lastUs: number): void {
    const alert = alertOf(() => {
      this.reclaims.delete(alert)
      this.reclaim(brought).catch(noMatter)
    })
    this.reclaims.set(alert, brought)
    this.alarm.set(alert, this.ticker.read() + Math.max(0, Math.ceil(lastUs)) + RECLAIMED_US, 0)
  }

  private async reclaim({ part, key, endUs, grantId }: Brought): Promise<void> {
    const { pool, home, policy } = this.parts[part] as RegionPart
    const tokens = await pool.reclaim(key, endUs)
    if (tokens > flowingBack(policy, this.terms))
      await home.execute({ verb: 'giveBack', key, charge: { grantId, part: 0, cost: tokens }, tokens })
  }

  /** One more renewal keeps a slow key warm that nobody calls for, until about a lease later. */
  private keepLater(part: number, key: string, lastUs: number): void {
    const alert = alertOf(() => {
      this.keeps.delete(alert)
      this.keep(part, key).catch(noMatter)
    })
    this.keeps.add(alert)
    this.alarm.set(alert, this.ticker.read() + Math.max(0, Math.ceil(lastUs - this.leadUs)), 0)
  }

  private async keep(part: number, key: string): Promise<void> {
    const drawn = await this.poolOf(part).draw(key, { want: 0, least: 0, demand: 0, ...this.foreseen })
    if (isDue(drawn, this.terms, this.leadUs, true)) await this.claim(part, key, drawn, this.leadUs, true)
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

function answerOf({ untilFreeUs, blockedUs, remaining, untilNewUs }: Denial): Omit<HomeAnswer, 'askedUs' | 'isScarce' | 'least'> {
  return { deniedUs: whole(untilFreeUs), blockedUs: whole(blockedUs), rest: remaining, fullUs: whole(untilNewUs) }
}

/** Whole microseconds that a double holds: bans may be longer. */
function whole(us: number): number {
  return Math.min(Math.ceil(us), Number.MAX_SAFE_INTEGER / 8)
}

/** The region's store forgets a claim by itself. */
function noMatter(): void {}
