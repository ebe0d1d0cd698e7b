import type { Decision } from '../decision.js'
import type { Clock, Ticker } from '../clock.js'
import { tickerOf } from '../clock.js'
import { StoreError } from '../errors.js'
import type { Authority } from '../lease/authority.js'
import { KeyLease } from '../lease/key-lease.js'
import { goodForUs, leaseUsOf } from '../lease/leasing.js'
import type { Policy } from '../policy.js'

/** How often a caller looks again before it asks the store for itself. */
const MOST_LOOKS = 8
/** How often what came too late is asked for. */
const MOST_TRIES = 2
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
    this.horizonUs = parts.horizonMs * 1000
    this.leaseUs = leaseUsOf(parts.horizonMs)
    this.maxKeys = parts.maxKeys
  }

  /** Keys of which something is known here. */
  get size(): number {
    return this.leases.size
  }

  take(key: string, cost: number): Decision | Promise<Decision> {
    const nowUs = this.ticker.read()
    const lease = this.leases.get(key) ?? this.newLease(key, nowUs)
    if (lease === undefined) return this.atOnce(key, cost)
    lease.ask(cost)
    const decision = this.decided(lease, key, cost, nowUs)
    if (decision !== undefined) return decision
    if (this.beyond.isOut(key)) return this.beyond.without(key, cost)
    // More than is here is one atomic call; of a key of which nothing is here it may come with a lease.
    return cost > 1 && lease.holds(nowUs) ? this.atOnce(key, cost) : this.fetched(lease, key, cost)
  }

  /** What is known here of a key that was changed by hand is no longer true. */
  forget(key: string): void {
    this.leases.get(key)?.forget()
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
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      lease.waiting += cost
      if (!(await (lease.asking ?? this.fetch(lease, key)))) return this.beyond.without(key, cost)
      const decision = this.decided(lease, key, cost, this.ticker.read())
      if (decision !== undefined) return decision
      if (cost > 1) break
    }
    return this.atOnce(key, cost)
  }

  /** By the store alone. What comes too late to be spent within the budget is lost, and is asked for once more. */
  private async atOnce(key: string, cost: number): Promise<Decision> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const sentUs = this.ticker.read()
      const decision = await this.beyond.take(key, cost)
      const isInTime = this.ticker.read() - sentUs <= goodForUs(this.policy, decision, this.leaseUs)
      if (!decision.allowed || decision.source !== 'store' || isInTime) return decision
    }
    return this.beyond.without(key, cost)
  }

  /** Whether the authority answered. */
  private fetch(lease: KeyLease, key: string): Promise<boolean> {
    const asking = this.asked(lease, key).finally(() => {
      lease.asking = undefined
    })
    lease.asking = asking
    return asking
  }

  private async asked(lease: KeyLease, key: string): Promise<boolean> {
    // All who come in this turn ask together.
    await undefined
    const sentUs = this.ticker.read()
    const want = lease.want(sentUs, this.horizonUs)
    try {
      const grant = await this.authority.lease(key, want, this.horizonUs)
      lease.take(grant, want, sentUs, this.ticker.read())
      return true
    } catch (error) {
      if (error instanceof StoreError && error.code === 'OUTAGE') return false
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
    const lease = new KeyLease(nowUs)
    this.leases.set(key, lease)
    return lease
  }
}
