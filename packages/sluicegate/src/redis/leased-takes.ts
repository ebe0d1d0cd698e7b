import type { Clock, Ticker } from '../clock.js'
import { tickerOf } from '../clock.js'
import type { Decision } from '../decision.js'
import { StoreError } from '../errors.js'
import type { Authority } from '../lease/authority.js'
import { type Asking, KeyLease } from '../lease/key-lease.js'
import { CLOCK_DRIFT, goodForUs, leaseUsOf, mostLeased } from '../lease/leasing.js'
import type { Policy } from '../policy.js'

/** How often a caller looks again before it asks the store for itself: those of a larger cost find what others left. */
const MOST_LOOKS = 8
const MOST_LOOKS_OF_LARGER = 2
/** How often what came too late is asked for; and when it came in time, but for a window that ended. */
const MOST_TRIES = 2
const MOST_WINDOW_TRIES = 64
/** How many keys are looked at to make room for one. */
const LOOKED_AT = 16

/** What is asked when a lease cannot answer. */
export interface Beyond {
  /** One atomic call. */
  take(key: string, cost: number): Promise<Decision>
  /** Whether the store is not asked at all for now. */
  isOut(key: string): boolean
  /** The store cannot be reached. */
  without(key: string, cost: number): Decision
}

/** Takes of a leased policy: from what this process holds, as long as it holds something or knows that there is nothing. */
export class LeasedTakes {
  decisions = 0
  private readonly policy: Policy
  private readonly authority: Authority
  private readonly beyond: Beyond
  private readonly ticker: Ticker
  private readonly horizonUs: number
  private readonly leaseUs: number
  /** An answer that took longer is too late. */
  private readonly goodUs: number
  private readonly mostTokens: number
  private readonly maxKeys: number
  private readonly leases = new Map<string, KeyLease>()

  constructor(parts: {
    readonly policy: Policy
    readonly authority: Authority
    readonly beyond: Beyond
    readonly clock: Clock
    readonly horizonMs: number
    readonly maxKeys: number
  }) {
    this.policy = parts.policy
    this.authority = parts.authority
    this.beyond = parts.beyond
    this.ticker = tickerOf(parts.clock)
    this.horizonUs = Math.round(parts.horizonMs * 1000)
    this.leaseUs = leaseUsOf(parts.horizonMs)
    this.goodUs = this.leaseUs - this.leaseUs / CLOCK_DRIFT
    this.mostTokens = mostLeased(parts.policy, this.leaseUs)
    this.maxKeys = parts.maxKeys
  }

  /** Keys of which something is known here. */
  get size(): number {
    return this.leases.size
  }

  take(key: string, cost: number): Decision | Promise<Decision> {
    // What can never pass takes nothing from the others.
    if (cost > this.mostTokens) return this.atOnce(key, cost)
    const nowUs = this.ticker.read()
    const lease = this.leases.get(key) ?? this.newLease(key, nowUs)
    if (lease === undefined) return this.atOnce(key, cost)
    lease.demand.ask(cost)
    const decision = this.decided(lease, key, cost, nowUs)
    if (decision !== undefined) return decision
    if (this.beyond.isOut(key)) return this.beyond.without(key, cost)
    return this.fetched(lease, key, cost)
  }

  /**
   * The key was changed by hand: what is known of it here is no longer true. Tokens in hand stay where it was only given something back;
   * those of other processes are theirs until they end.
   */
  forget(key: string, keepsTokens = false): void {
    const lease = this.leases.get(key)
    if (keepsTokens) lease?.forgetDenial(this.ticker.read())
    else lease?.forget(this.ticker.read())
  }

  /** A decision, if one can be made here. */
  private decided(lease: KeyLease, key: string, cost: number, nowUs: number): Decision | undefined {
    const isSpent = lease.spend(nowUs, cost)
    const untilUs = isSpent ? nowUs : lease.deniedUntil(nowUs, cost)
    if (untilUs === undefined) return undefined
    if (lease.asking === undefined && lease.isLow(nowUs)) this.fetch(lease, key).catch(() => undefined)
    this.decisions++
    const { limit, name } = this.policy
    const retryAfterMs = isSpent ? 0 : Math.max(1, Math.ceil((untilUs - nowUs) / 1000))
    const { remaining, resetAfterMs } = lease.standing(nowUs)
    return { allowed: isSpent, limit, remaining, retryAfterMs, resetAfterMs, policy: name, source: 'lease' }
  }

  /** One request at a time is on its way for a key. Whoever comes meanwhile waits for it, and then looks again first. */
  private async fetched(lease: KeyLease, key: string, cost: number): Promise<Decision> {
    const mostLooks = cost > 1 ? MOST_LOOKS_OF_LARGER : MOST_LOOKS
    let late = 0
    for (let looks = 0; looks < mostLooks; looks++) {
      const answer = await this.next(lease, key, cost)
      const decision = this.decided(lease, key, cost, this.ticker.read())
      if (decision !== undefined) return decision
      // A process that was stopped finds its answer late: that is no outage yet.
      if (answer === 'out' || (answer === 'late' && ++late === MOST_TRIES)) return this.beyond.without(key, cost)
    }
    const decision = await this.atOnce(key, cost)
    const { allowed, source, retryAfterMs } = decision
    if (!allowed && source === 'store') lease.refuse(cost, this.ticker.read() + retryAfterMs * 1000)
    return decision
  }

  /** Waits for the lease that is on its way, or for one that is asked for now. */
  private async next(lease: KeyLease, key: string, cost: number): Promise<Asking> {
    lease.demand.join(cost)
    try {
      return await (lease.asking ?? this.fetch(lease, key))
    } finally {
      lease.demand.leave(cost)
    }
  }

  /** By the store alone. What comes too late to be spent within the budget is lost, and is asked for once more. */
  private async atOnce(key: string, cost: number): Promise<Decision> {
    let late = 0
    for (let tries = 0; late < MOST_TRIES && tries < MOST_WINDOW_TRIES; tries++) {
      const sentUs = this.ticker.read()
      const decision = await this.beyond.take(key, cost)
      const tookUs = this.ticker.read() - sentUs
      if (!decision.allowed || decision.source !== 'store' || tookUs <= goodForUs(this.policy, decision, this.leaseUs)) return decision
      if (tookUs > this.goodUs) late++
    }
    return this.beyond.without(key, cost)
  }

  private fetch(lease: KeyLease, key: string): Promise<Asking> {
    const asking = this.asked(lease, key).finally(() => {
      lease.asking = undefined
    })
    lease.asking = asking
    return asking
  }

  private async asked(lease: KeyLease, key: string): Promise<Asking> {
    // All who come in this turn ask together.
    await undefined
    const asked = lease.want(this.ticker.read())
    try {
      const grant = await this.authority.lease(key, asked.want, this.horizonUs, asked.least)
      const arrivedUs = this.ticker.read()
      lease.take(grant, asked, arrivedUs)
      return arrivedUs - asked.sentUs <= this.goodUs ? 'in time' : 'late'
    } catch (error) {
      lease.failed(this.ticker.read())
      if (error instanceof StoreError && error.code === 'OUTAGE') return 'out'
      throw error
    }
  }

  /** Undefined when there is no room for another. */
  private newLease(key: string, nowUs: number): KeyLease | undefined {
    let looked = 0
    for (const [other, lease] of this.leases) {
      this.leases.delete(other)
      if (!lease.isIdle(nowUs)) this.leases.set(other, lease)
      // Two for each that comes keep the table clean; a full one is searched a little further.
      if (++looked >= (this.leases.size < this.maxKeys ? 2 : LOOKED_AT)) break
    }
    if (this.leases.size >= this.maxKeys) return undefined
    const lease = new KeyLease(nowUs, this.horizonUs)
    this.leases.set(key, lease)
    return lease
  }
}
