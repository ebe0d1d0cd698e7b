import type { Decision } from '../../decision/decision.js'
import { checkKey } from '../../key.js'
import type { RefillOutcome } from '../../lease/grant.js'
import type { KeyLease } from '../../lease/key-lease.js'
import type { Key } from '../../limiter.js'
import type { Charge } from '../backend.js'
import type { ForgottenTokens, LeaseTable } from './lease-table.js'
import { WaitingTakes, type WaitingTakesParts } from './waiting-takes.js'

/** Takes decided by leases and cached denials of this process where these can decide, else by the backend. */
export interface LeasedTakes {
  /** Decisions made in this process. */
  readonly decisions: number
  /** Keys with a lease or cached denial, summed over the policies. */
  readonly size: number
  /** @param charges receives what the take charges, for {@link LeasedTakes.giveBack}. */
  take(key: Key, cost: number, charges?: Charge[]): Decision | Promise<Decision>
  /** Gives back as much as is safe of `tokens` that one take has spent of grants. */
  giveBack(key: Key, charges: readonly Charge[], tokens: number): Promise<unknown>
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
 * 2. `decided` spends from the tokens that are held; when few are left, the table asks for more ahead of need (`refillIfLow`).
 * 3. The held tokens do not decide. In an outage the fallback does, at once.
 * 4. `decideLater` waits for the refill in flight, or starts one (`awaitRefill`), and repeats step 2.
 * 5. A refill is one call of `Backend.lease`; its grant is added to the {@link KeyLease} (`addGrant`).
 * 6. Where a lease is not worth it, and after some refills in vain, `alone` asks the backend about this take.
 */
export class SingleLeasedTakes extends WaitingTakes implements LeasedTakes {
  decisions = 0
  private readonly table: LeaseTable
  private readonly mostTokens: number

  constructor(table: LeaseTable, parts: WaitingTakesParts) {
    super(parts)
    this.table = table
    this.mostTokens = table.mostTokens
  }

  get size(): number {
    return this.table.size
  }

  take(key: Key, cost: number, charges?: Charge[]): Decision | Promise<Decision> {
    checkKey(key)
    // A cost that can never pass takes nothing from the lease.
    if (cost > this.mostTokens) return this.exact(key, cost, charges)
    const nowUs = this.ticker.read()
    const lease = this.table.of(key, nowUs)
    if (lease === undefined) return this.exact(key, cost, charges)
    lease.demand.request(cost)
    const cached = lease.cachedDenial.at(nowUs, cost)
    if (cached !== undefined) {
      this.decisions++
      return cached
    }
    const decision = this.decided(lease, key, cost, nowUs, charges)
    if (decision !== undefined) return decision
    return this.isOut(key) ? this.without(key, cost) : this.decideLater(key, cost, charges)
  }

  giveBack(key: Key, charges: readonly Charge[], tokens: number): Promise<unknown> {
    return this.table.giveBack(key as string, charges, tokens)
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

  protected decide(key: Key, cost: number, charges: Charge[] | undefined): Decision | undefined {
    const nowUs = this.ticker.read()
    const lease = this.table.of(key as string, nowUs)
    return lease && this.decided(lease, key as string, cost, nowUs, charges)
  }

  protected async awaitRefill(key: Key, cost: number): Promise<RefillOutcome> {
    const nowUs = this.ticker.read()
    const lease = this.table.of(key as string, nowUs)
    if (lease === undefined) return 'alone'
    lease.demand.join(cost, nowUs)
    try {
      return await this.table.refill(lease, key as string, true)
    } finally {
      lease.demand.leave(cost)
    }
  }

  protected async alone(key: Key, cost: number, charges: Charge[] | undefined): Promise<Decision> {
    const demand = this.table.of(key as string, this.ticker.read())?.demand.report()
    const decision = await this.exact(key, cost, charges, demand)
    return decision.source === 'store' ? this.table.answered(key as string, cost, decision) : decision
  }

  /** A decision, if this process can make one. */
  private decided(lease: KeyLease, key: string, cost: number, nowUs: number, charges: Charge[] | undefined): Decision | undefined {
    let untilUs: number | undefined
    if (!lease.spend(nowUs, cost, charges)) {
      untilUs = lease.deniedUntil(nowUs, cost)
      if (untilUs === undefined) return undefined
    }
    this.table.refillIfLow(lease, key, nowUs)
    this.decisions++
    const decision = this.table.decision(lease, nowUs, untilUs)
    if (untilUs !== undefined) lease.cacheDenial(decision, cost, nowUs, untilUs)
    return decision
  }
}
