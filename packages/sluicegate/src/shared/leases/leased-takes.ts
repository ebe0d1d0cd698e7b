import type { Decision } from '../../decision/decision.js'
import { checkKey } from '../../key.js'
import type { KeyLease } from '../../lease/key-lease.js'
import type { ForgottenTokens, LeaseTable } from '../../lease/lease-table.js'
import type { Key } from '../../limiter.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import type { LeaseMiss } from './lease-miss.js'

/** Takes decided by leases and cached denials of this process where these can decide, else by the backend. */
export interface LeasedTakes {
  /** Decisions made in this process. */
  readonly decisions: number
  /** Keys with a lease or cached denial, summed over the policies. */
  readonly size: number
  take(key: Key, cost: number): Decision | Promise<Decision>
  /**
   * A verb changed the key: what this process knows of it is no longer true. Tokens leased by other processes stay theirs until they expire.
   *
   * @param held what becomes of the leased tokens; default `returned`.
   */
  forget(key: Key, held?: ForgottenTokens): void
  /** Tokens of the key were refunded at the backend: leases stay, and `decision` says how the key stands there. */
  refunded(key: Key, decision: Decision): void
  /** Gives the leased tokens back. */
  close(): void
}

/**
 * Of one policy. A take, from top to bottom:
 *
 * 1. `take` looks the key up in the {@link LeaseTable} of this process, and its cached denial.
 * 2. `decided` spends from the tokens that are held; when few are left, the table asks for more ahead of need (`refillIfLow`). Most takes end here.
 * 3. `onMiss`: the held tokens do not decide. In an outage the fallback does, at once.
 * 4. {@link LeaseMiss.decideAfterRefill} waits for the refill in flight, or starts one (`awaitRefill`), and repeats step 2.
 * 5. A refill is one call of `Backend.lease`; its grant is added to the {@link KeyLease} (`addGrant`).
 * 6. After some refills in vain `exact` asks the backend about this take alone.
 */
export class SingleLeasedTakes implements LeasedTakes {
  decisions = 0
  private readonly table: LeaseTable
  private readonly ticker: Ticker
  private readonly mostTokens: number
  private readonly miss: LeaseMiss

  constructor(table: LeaseTable, miss: LeaseMiss, clock: Clock) {
    this.table = table
    this.ticker = tickerOf(clock)
    this.mostTokens = table.mostTokens
    this.miss = miss
  }

  get size(): number {
    return this.table.size
  }

  take(key: Key, cost: number): Decision | Promise<Decision> {
    checkKey(key)
    // A cost that can never pass takes nothing from the lease.
    if (cost > this.mostTokens) return this.miss.exact(key, cost)
    const nowUs = this.ticker.read()
    const lease = this.table.of(key, nowUs)
    if (lease === undefined) return this.miss.exact(key, cost)
    lease.demand.ask(cost)
    const cached = lease.cachedDenial.at(nowUs, cost)
    if (cached !== undefined) {
      this.decisions++
      return cached
    }
    return this.decided(lease, key, cost, nowUs) ?? this.onMiss(lease, key, cost)
  }

  forget(key: Key, held: ForgottenTokens = 'returned'): void {
    this.table.forget(key as string, held)
  }

  refunded(key: Key, decision: Decision): void {
    this.table.refunded(key as string, decision)
  }

  close(): void {
    this.table.close()
  }

  /** A decision, if this process can make one. */
  private decided(lease: KeyLease, key: string, cost: number, nowUs: number): Decision | undefined {
    let untilUs: number | undefined
    if (!lease.spend(nowUs, cost)) {
      untilUs = lease.deniedUntil(nowUs, cost)
      if (untilUs === undefined) return undefined
    }
    this.table.refillIfLow(lease, key, nowUs)
    this.decisions++
    const decision = this.table.decision(lease, nowUs, untilUs)
    if (untilUs !== undefined) lease.cacheDenial(decision, cost, nowUs, untilUs)
    return decision
  }

  private onMiss(lease: KeyLease, key: string, cost: number): Decision | Promise<Decision> {
    const { miss } = this
    if (miss.isOut(key)) return miss.without(key, cost)
    return miss.decideAfterRefill({
      key,
      cost,
      decide: () => this.decided(lease, key, cost, this.ticker.read()),
      awaitRefill: () => this.table.awaitRefill(lease, key, cost),
      exact: () => this.exact(lease, key, cost),
    })
  }

  private async exact(lease: KeyLease, key: string, cost: number): Promise<Decision> {
    const decision = await this.miss.exact(key, cost)
    const { allowed, source, retryAfterMs, remaining } = decision
    if (source !== 'store') return decision
    if (allowed) lease.passed(remaining)
    else this.refuse(lease, cost, retryAfterMs)
    return decision
  }

  private refuse(lease: KeyLease, cost: number, retryAfterMs: number): void {
    const nowUs = this.ticker.read()
    lease.refuse(cost, nowUs + retryAfterMs * 1000, nowUs)
  }
}
