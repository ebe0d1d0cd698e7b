import { type Clock, type Ticker, tickerOf } from '../clock.js'
import type { Decision } from '../decision.js'
import { isOutage } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { Backend } from '../shared/backend.js'
import type { Asking } from './asked.js'
import { KeyLease } from './key-lease.js'
import { LeaseReturns } from './lease-returns.js'
import { leaseUsOf, mostLeased, surelyUs } from './leasing.js'

/** How many keys are looked at to make room for one. */
const LOOKED_AT = 16

/** What a table of leases is made of. */
export interface LeaseTableParts {
  readonly policy: Policy
  readonly backend: Backend
  /** Which policy of `allOf` the backend knows it as; else 0. */
  readonly part: number
  readonly clock: Clock
  readonly horizonMs: number
  readonly maxKeys: number
  /** Told how many tokens each lease brought. */
  readonly charged?: (tokens: number) => void
  /** Told of each answer whether it came too late for what it gave to be spent. */
  readonly answered?: (isLate: boolean) => void
}

/** What becomes of tokens in hand when their key was changed by hand: given back, unless the authority has forgotten that it lent them. */
export type HeldThen = 'given back' | 'dropped'

/** What this process holds of the keys of one policy. */
export class LeaseTable {
  readonly policy: Policy
  readonly leaseUs: number
  /** What costs more never passes. */
  readonly mostTokens: number
  private readonly parts: LeaseTableParts
  private readonly ticker: Ticker
  private readonly horizonUs: number
  /** An answer that took longer is too late. */
  private readonly goodUs: number
  private readonly leases = new Map<string, KeyLease>()
  private readonly returns: LeaseReturns
  /** Who asks about a key often asks about it again. */
  private lastKey = ''
  private lastLease: KeyLease | undefined

  constructor(parts: LeaseTableParts) {
    this.parts = parts
    this.policy = parts.policy
    this.ticker = tickerOf(parts.clock)
    this.horizonUs = Math.round(parts.horizonMs * 1000)
    this.leaseUs = leaseUsOf(parts.horizonMs)
    this.goodUs = surelyUs(this.leaseUs)
    this.mostTokens = mostLeased(parts.policy, this.leaseUs)
    this.returns = new LeaseReturns(parts)
  }

  /** Keys of which something is known here. */
  get size(): number {
    return this.leases.size
  }

  /** What is held of a key; undefined when there is no room for another. */
  of(key: string, nowUs: number): KeyLease | undefined {
    if (key === this.lastKey && this.lastLease !== undefined) return this.lastLease
    const lease = this.leases.get(key) ?? this.newLease(key, nowUs)
    this.lastKey = key
    this.lastLease = lease
    return lease
  }

  /** For one take alone, of which nobody else knows. */
  aside(nowUs: number): KeyLease {
    return new KeyLease(nowUs, this.horizonUs)
  }

  /** The key was changed by hand: what is known of it is not true any more. */
  forget(key: string, held: HeldThen): void {
    const lease = this.leases.get(key)
    if (lease === undefined) return
    const nowUs = this.ticker.read()
    if (held === 'dropped') lease.drain(nowUs)
    else {
      lease.forget(nowUs)
      this.returns.tell(lease, key)
    }
  }

  /** The key was given something back, and stands like this now where the lease came from. */
  refunded(key: string, decision: Decision): void {
    this.leases.get(key)?.refunded(decision, this.ticker.read())
  }

  /** Gives back all that is here and can be, and whatever still comes. */
  close(): void {
    this.returns.close()
  }

  /** Fetches more for those who will ask soon, if it is time to. */
  ahead(lease: KeyLease, key: string, nowUs: number): void {
    if (lease.asking === undefined && lease.isLow(nowUs)) this.fetch(lease, key).catch(() => undefined)
  }

  /**
   * Waits for the lease that is on its way, or for one that is asked for now: one request at a time is on its way for a key. Whoever comes
   * meanwhile waits for it, and then looks again first.
   */
  async next(lease: KeyLease, key: string, cost: number): Promise<Asking> {
    lease.demand.join(cost, this.ticker.read())
    try {
      return await (lease.asking ?? this.fetch(lease, key))
    } finally {
      lease.demand.leave(cost)
    }
  }

  /** @param deniedUntilUs undefined where it passes, as far as this policy goes. */
  decision(lease: KeyLease, nowUs: number, deniedUntilUs: number | undefined): Decision {
    const { limit, name } = this.policy
    return {
      allowed: deniedUntilUs === undefined,
      limit,
      remaining: lease.remainingAt(nowUs),
      retryAfterMs: deniedUntilUs === undefined ? 0 : Math.max(1, Math.ceil((deniedUntilUs - nowUs) / 1000)),
      resetAfterMs: lease.resetAfterMs(nowUs),
      policy: name,
      source: 'lease',
    }
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
    const { backend, part } = this.parts
    const asked = lease.want(this.ticker.read())
    const { want, least } = asked
    try {
      const grant = await backend.lease({ key, part, want, least, horizonUs: this.horizonUs })
      const arrivedUs = this.ticker.read()
      this.parts.charged?.(grant.availableNow + grant.availableLater)
      lease.take(grant, asked, arrivedUs)
      this.returns.watch(lease, key)
      const isLate = arrivedUs - asked.sentUs > this.goodUs
      this.parts.answered?.(isLate)
      return isLate ? 'late' : 'in time'
    } catch (error) {
      lease.failed(this.ticker.read())
      if (isOutage(error)) return 'out'
      throw error
    }
  }

  private newLease(key: string, nowUs: number): KeyLease | undefined {
    const { leases } = this
    const { maxKeys } = this.parts
    const isFull = leases.size >= maxKeys
    let looked = 0
    for (const [other, lease] of leases) {
      leases.delete(other)
      // For how much a key was asked of late is forgotten only where room is needed.
      if (!lease.isEmpty(nowUs) || (!isFull && lease.demand.isRecent(nowUs))) leases.set(other, lease)
      // Two for each that comes keep the table clean; a full one is searched a little further.
      if (++looked >= (leases.size < maxKeys ? 2 : LOOKED_AT)) break
    }
    if (leases.size >= maxKeys) return undefined
    const lease = new KeyLease(nowUs, this.horizonUs)
    leases.set(key, lease)
    return lease
  }
}
